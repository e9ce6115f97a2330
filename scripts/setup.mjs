// Plain JavaScript: on a clean clone there is only the system's Node 18. Installs what is missing and nothing else.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { alone } from './alone.mjs'
import { bundled, pinnedNode, project } from './launch.mjs'
import { installCommand, installPackages, missingPackages } from './packages.mjs'
import { run, step } from './step.mjs'

/**
 * Debian packages, npm packages, the native PKCS#11 module and the helper of strict mode; quick when all is there.
 * @param {{ tests?: boolean, wide?: boolean, mysql?: boolean, bench?: boolean, openbao?: boolean }} [options] adds the
 *   needs of tests, of their second environments, of those on MySQL, of the benchmark, or of OpenBao beside it
 * @returns {Promise<void>} when that is impossible, says what to do and ends the process with 1
 */
export async function setup({ tests = false, wide = false, mysql = false, bench = false, openbao = wide } = {}) {
  try {
    // Of two at once, such as a server's and that of tests, one waits for the other.
    await alone(join(project, 'package-lock.json'), () => install({ tests, wide, mysql, bench, openbao }))
  } catch (error) {
    console.error(`Set-up failed. ${error.message}`)
    process.exit(1)
  }
}

async function install(extent) {
  const names = missingPackages(extent)
  if (names.length > 0) {
    if (process.getuid?.() !== 0) {
      console.error(`Missing: ${names.join(', ')}. Run as root, then start again:\n\n  ${installCommand(names)}\n`)
      process.exit(1)
    }
    await step(`Debian packages ${names.join(' ')}`, () => installPackages(names))
  }
  if (!installed()) await step('npm packages', () => npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund']))
  if (!(await loads())) {
    await step('native PKCS#11 module', () => npm(['rebuild', 'pkcs11js', '--ignore-scripts=false']))
    if (!(await loads())) throw new Error('pkcs11js was built but does not load')
  }
  await joinLibraries()
  // Strict mode's helper: the server itself never runs a compiler.
  await run(pinnedNode, [join(project, 'src', 'hsm', 'strict', 'compile.ts')], { cwd: project })
}

/** Whether node_modules agrees with package-lock.json, by the record that npm itself keeps there. */
function installed() {
  const record = join(project, 'node_modules', '.package-lock.json')
  if (!existsSync(record) || !existsSync(pinnedNode)) return false
  const have = JSON.parse(readFileSync(record, 'utf8')).packages
  const want = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')).packages
  // Optional packages are mostly for other kinds of machine.
  return Object.keys(want).every((path) => path === '' || want[path].optional || same(want[path], have[path]))
}

const same = (want, have) => have !== undefined && want.version === have.version && want.integrity === have.integrity

/** A user who may only read the installation starts all the same: the packages themselves are read then. */
async function joinLibraries() {
  if (existsSync(bundled())) return
  const folder = dirname(bundled())
  const written = existsSync(folder) ? folder : dirname(folder)
  try {
    accessSync(written, constants.W_OK)
  } catch {
    console.error(`Commands start slower than they could: libraries are not joined, and ${written} is not writable.`)
    return
  }
  await step('libraries joined', () => run(pinnedNode, [join(project, 'scripts', 'bundle.mjs')]))
}

/** Whether Node 24 can load the native module. */
const loads = () =>
  run(pinnedNode, ['-e', 'require("pkcs11js")'], { cwd: project }).then(
    () => true,
    () => false,
  )

/** npm compiles against the headers beside the pinned Node: their usual download site may be out of reach. */
function npm(args) {
  const env = { ...process.env, npm_config_nodedir: dirname(dirname(pinnedNode)), NODE_ENV: 'development' }
  env.HOME ||= userInfo().homedir
  // npm must not run on the Node that it is about to replace.
  env.PATH = (env.PATH ?? '')
    .split(':')
    .filter((folder) => !folder.startsWith(join(project, 'node_modules')))
    .join(':')
  return run('npm', args, { cwd: project, env })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setup()
