import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
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

/** The command lines of a process and all below it; without processes that have ended meanwhile. */
function commands(pid: number): string[] {
  try {
    return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '), ...childrenOf(pid).flatMap(commands)]
  } catch {
    return []
  }
}

test('bin/strongroom.mjs in a link that moved, itself found by a link, upgrades to where it leads now', async () => {
  const directory = mkdtempSync(join(runDirectory(), 'linked-'))
  install(join(directory, 'one'))
  install(join(directory, 'two'))
  const [current, inPath] = [join(directory, 'current'), join(directory, 'strongroom')]
  symlinkSync('one', current)
  symlinkSync('current/bin/strongroom.mjs', inPath)
  await using site = await createSite({ workers: 1 })
  expect((await strongroom(['init', '--config', site.file])).code).toBe(0)
  await using server = start(['server', '--config', site.file], {}, inPath)
  const address = await server.ready()
  const worker = (version: string) => expect.stringContaining(join(directory, version, 'src', 'worker.ts'))
  expect(commands(server.process.pid ?? 0)).toContainEqual(worker('one'))
  symlinkSync('two', `${current}.new`)
  renameSync(`${current}.new`, current)
  expect(await strongroom(['reload', '--exec', '--config', site.file])).toMatchObject({ code: 0 })
  expect(commands(server.process.pid ?? 0)).toContainEqual(worker('two'))
  expect((await fetchAlone(`${address}/v1/sys/health`)).status).toBe(200)
  server.process.kill('SIGTERM')
  expect(await server.ended).toBe(0)
}, 240_000)
