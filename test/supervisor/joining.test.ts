import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, cpSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runDirectory } from '../support/directory.ts'

/** Joins libraries in an installation of its own (scripts/bundle.mjs), and asks what its processes read. */

const project = join(import.meta.dirname, '..', '..')

interface Installation {
  readonly root: string
  /** What lies in the place of joined forms. */
  readonly joined: () => readonly string[]
}

/** This program once more, with packages that nobody has joined. */
function install(name: string): Installation {
  const root = join(runDirectory(), name)
  const modules = join(root, 'node_modules')
  mkdirSync(modules, { recursive: true })
  for (const part of ['src', 'scripts', 'softhsm', 'package.json', 'package-lock.json']) {
    cpSync(join(project, part), join(root, part), { recursive: true, preserveTimestamps: true })
  }
  cpSync(join(project, '.build', 'strict-kek'), join(root, '.build', 'strict-kek'), { preserveTimestamps: true })
  for (const one of readdirSync(join(project, 'node_modules'))) {
    if (!one.startsWith('.')) symlinkSync(join(project, 'node_modules', one), join(modules, one))
  }
  cpSync(join(project, 'node_modules', '.package-lock.json'), join(modules, '.package-lock.json'))
  return { root, joined: () => readdirSync(join(modules, '.bundled')) }
}

const joining = ({ root }: Installation): ChildProcess => spawn(process.execPath, [join(root, 'scripts', 'bundle.mjs')])
const ended = async (child: ChildProcess): Promise<unknown> => (await once(child, 'exit'))[0]

/** Whether a process of this installation reads the joined form of a library. */
function readsJoined({ root }: Installation): boolean {
  const script = `await import('${root}/src/supervisor/loading.ts')
    process.stdout.write(import.meta.resolve('yaml'))`
  const url = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: root, encoding: 'utf8' })
  expect(url).toContain('yaml')
  return url.includes('.bundled')
}

test('set-ups at once, or killed, leave one joined form, which none replaces while it is read', async () => {
  const installation = install('joined-at-once')
  const killed = joining(installation)
  while (!drafts(installation)) await new Promise((resolve) => setTimeout(resolve, 5))
  killed.kill('SIGKILL')
  await ended(killed)
  expect(readsJoined(installation)).toBe(false)
  expect(await Promise.all([joining(installation), joining(installation)].map(ended))).toEqual([0, 0])
  expect(readsJoined(installation)).toBe(true)
  const [whole = '', draft = ''] = installation.joined().toSorted()
  expect(draft).toBe(`${whole}.${killed.pid}`)
  const at = (name: string) => join(installation.root, 'node_modules', '.bundled', name)
  const { ino } = statSync(at(whole))
  const hoursAgo = Date.now() / 1000 - 7200
  for (const name of [whole, draft]) utimesSync(at(name), hoursAgo, hoursAgo)
  expect(await ended(joining(installation))).toBe(0)
  expect(installation.joined()).toEqual([whole])
  expect(statSync(at(whole)).ino).toBe(ino)
})

test('after packages or the way to join them changed, packages are read, also in a copy with new times', async () => {
  for (const changed of ['node_modules/.package-lock.json', 'scripts/bundle.mjs']) {
    const installation = install(`joined-${changed.length}`)
    expect(await ended(joining(installation))).toBe(0)
    expect(readsJoined(installation)).toBe(true)
    appendFileSync(join(installation.root, changed), '\n')
    const later = Date.now() / 1000 + 60
    for (const name of ['', ...installation.joined()]) {
      utimesSync(join(installation.root, 'node_modules', '.bundled', name), later, later)
    }
    expect(readsJoined(installation)).toBe(false)
    expect(await ended(joining(installation))).toBe(0)
    expect(readsJoined(installation)).toBe(true)
  }
})

test('set-up by somebody who may only read the installation says that libraries are not joined, and succeeds', () => {
  // Another user than root is needed, who could not become one.
  if (process.getuid?.() !== 0) return
  const { root } = install('joined-read-only')
  const { mode } = statSync(runDirectory())
  chmodSync(runDirectory(), 0o711)
  const command = ['--reuid', '65534', '--regid', '65534', '--clear-groups', process.execPath]
  const ran = spawnSync('setpriv', [...command, join(root, 'scripts', 'setup.mjs')], { encoding: 'utf8' })
  chmodSync(runDirectory(), mode)
  expect(ran.stderr).toContain('libraries are not joined')
  expect(ran.stderr.trim()).not.toContain('\n')
  expect(ran.status).toBe(0)
})

/** Whether a joined form is being made. */
function drafts({ joined }: Installation): boolean {
  try {
    return joined().length > 0
  } catch {
    return false
  }
}
