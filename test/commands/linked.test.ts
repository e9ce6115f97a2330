import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fetchAlone } from '../supervisor/node.ts'
import { runDirectory } from '../support/directory.ts'
import { start, strongroom } from './cli.ts'
import { createSite } from './site.ts'

const project = `${import.meta.dirname}/../..`

/** This program once more, at another path. */
function install(path: string): void {
  mkdirSync(path)
  for (const part of ['bin', 'scripts', 'src', 'package.json'])
    cpSync(join(project, part), join(path, part), { recursive: true })
  symlinkSync(join(project, 'node_modules'), join(path, 'node_modules'))
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

/** The command lines of a process and all below it; without processes that have ended, whose lines are empty. */
function commands(pid: number): string[] {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return [...(line === '' ? [] : [line]), ...childrenOf(pid).flatMap(commands)]
  } catch {
    return []
  }
}

/** An installation of another program, which leaves a file behind when it runs, as its Node does. */
function installOther(path: string): { readonly environment: Record<string, string>; readonly ran: string } {
  const ran = join(path, 'ran')
  const node = join(path, 'bin', 'node')
  const main = join(path, 'src', 'main.ts')
  for (const folder of ['bin', 'src']) mkdirSync(join(path, folder), { recursive: true })
  writeFileSync(node, `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 })
  writeFileSync(main, `import { writeFileSync } from 'node:fs'\nwriteFileSync('${ran}', '')\n`)
  writeFileSync(join(path, 'package.json'), '{}')
  const environment = {
    ...{
      PATH: `${join(path, 'bin')}:${process.env.PATH}`,
      PWD: path,
      OLDPWD: path,
      INIT_CWD: path,
      HOME: path,
      _: main,
    },
    ...{ NODE: node, NODE_PATH: path, npm_node_execpath: node, npm_execpath: main, npm_config_prefix: path },
    ...{ npm_package_json: join(path, 'package.json'), STRONGROOM_PROGRAM: main, STRONGROOM_NODE: node },
  }
  return { environment, ran }
}

test('bin/strongroom.mjs in a link that moved, itself found by a link, upgrades to where it leads now and to nothing named in variables or arguments', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'linked-'))
  install(join(directory, 'one'))
  install(join(directory, 'two'))
  const [current, inPath] = [join(directory, 'current'), join(directory, 'strongroom')]
  symlinkSync('one', current)
  symlinkSync('current/bin/strongroom.mjs', inPath)
  const other = installOther(join(directory, 'other'))
  await using site = await createSite({ workers: 1 })
  expect((await strongroom(['init', '--config', site.file])).code).toBe(0)
  await using server = start(['server', '--config', site.file], other.environment, inPath)
  const address = await server.ready()
  const worker = (version: string) => expect.stringContaining(join(directory, version, 'src', 'worker.ts'))
  expect(commands(server.process.pid ?? 0)).toContainEqual(worker('one'))
  symlinkSync('two', `${current}.new`)
  renameSync(`${current}.new`, current)
  const reload = (...more: string[]) =>
    strongroom(['reload', '--exec', '--config', site.file, ...more], other.environment)
  const named = await reload(join(directory, 'other', 'src', 'main.ts'))
  expect([named.code, named.stderr]).toEqual([2, expect.stringContaining('too many arguments')])
  expect(await reload()).toMatchObject({ code: 0 })
  const running = commands(server.process.pid ?? 0)
  expect(running).toContainEqual(worker('two'))
  const own = realpathSync(process.execPath)
  expect(new Set(running.map((line) => realpathSync(line.split(' ')[0] ?? '')))).toEqual(new Set([own]))
  expect(existsSync(other.ran)).toBe(false)
  expect((await fetchAlone(`${address}/v1/sys/health`)).status).toBe(200)
  server.process.kill('SIGTERM')
  expect(await server.ended).toBe(0)
}, 240_000)
