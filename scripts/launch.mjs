// Plain JavaScript: the system's Node 18 runs this. It starts the Node 24 that package-lock.json pins.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const project = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * The path by which this installation was started: an upgrade follows a link in it to its target of that moment.
 * @param {readonly (string | undefined)[]} names that may have been used; the first that leads here counts
 * @returns {string} absolute path
 */
export const asNamed = (names) => names.map((name) => resolve(name ?? '')).find(leadsHere) ?? project

function leadsHere(path) {
  try {
    return realpathSync(path) === realpathSync(project)
  } catch {
    return false
  }
}

/** Where npm puts the pinned Node 24 (no install script, no download beyond the registry). */
export const pinnedNode = join(project, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')

/**
 * Node keeps there what it compiled, types stripped: a server starts in two thirds of the time. As trusted as the
 * source, so it lies beside it, and only here, where the one who runs the program may also write it.
 */
export const compiled = { NODE_COMPILE_CACHE: join(project, '.build', 'compiled') }

/**
 * Where set-up joins libraries of many files, for the packages of this moment and the present way to join them: it is
 * there whole, or not at all. src/supervisor/loading.ts gives it the same name.
 */
export function bundled() {
  const name = createHash('sha256')
  for (const file of ['node_modules/.package-lock.json', 'scripts/bundle.mjs']) {
    name.update(readFileSync(join(project, file)))
  }
  return join(project, 'node_modules', '.bundled', name.digest('hex'))
}

const setpriv = '/usr/bin/setpriv'
const signals = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGUSR2']

/**
 * Runs a script under Node 24 in our place: same streams, signals passed on, and this process ends as the script ended.
 * The kernel sends the script SIGTERM when we are killed without being able to pass anything on.
 * @param {readonly string[]} args script and its arguments
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<number>} exit code; 128 + number when the script was killed by a signal
 */
export async function launch(args, env = process.env) {
  const node = existsSync(pinnedNode) ? pinnedNode : process.execPath
  if (node === process.execPath && Number.parseInt(process.versions.node, 10) < 24) {
    console.error(`Node 24 is not installed yet: run  node ${join(project, 'scripts', 'setup.mjs')}`)
    return 1
  }
  const bound = existsSync(setpriv) ? [setpriv, '--pdeathsig', 'TERM', node] : [node]
  const child = spawn(bound[0], [...bound.slice(1), ...args], { stdio: 'inherit', env })
  // Ctrl-C in a terminal reaches the whole process group by itself; passed on as well, it would count as a second one.
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
  for (const signal of signals) process.on(signal, () => (signal === 'SIGINT' && terminal) || child.kill(signal))
  return new Promise((done, fail) => {
    child.once('error', fail)
    child.once('exit', (code, signal) => done(code ?? 128 + constants.signals[signal]))
  })
}
