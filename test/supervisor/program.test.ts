import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { installedNode, installedProgram } from '../../src/supervisor/upgrade/program.ts'
import { runDirectory } from '../support/directory.ts'

function installation(directory: string, version: string, name = 'main.ts'): string {
  mkdirSync(join(directory, version, 'src'), { recursive: true })
  writeFileSync(join(directory, version, 'src', name), '')
  return join(directory, version, 'src', name)
}

test('an upgrade follows the link by which the program was started to where it leads now', () => {
  const directory = mkdtempSync(join(runDirectory(), 'installed-'))
  const [old, next] = [installation(directory, '1'), installation(directory, '2')]
  symlinkSync('1', join(directory, 'current'))
  const started = join(directory, 'current', 'src', 'main.ts')
  expect(installedProgram(started)).toBe(old)
  symlinkSync('2', join(directory, 'new'))
  renameSync(join(directory, 'new'), join(directory, 'current'))
  expect(installedProgram(started)).toBe(next)
})

test('an upgrade starts nothing but the program of an installation, of root or the own user', () => {
  const directory = mkdtempSync(join(runDirectory(), 'installed-'))
  const other = installation(directory, '1', 'other.ts')
  expect(() => installedProgram(other)).toThrow('is not the src/main.ts of an installation')
  const foreign = installation(directory, '2')
  if (process.getuid?.() !== 0) return
  chownSync(foreign, 4711, 4711)
  expect(() => installedProgram(foreign)).toThrow('belongs to user 4711')
})

test('of the names by which npm start may have been called, one that leads to another installation does not count', () => {
  const directory = mkdtempSync(join(runDirectory(), 'installed-'))
  installation(directory, '1')
  const project = join(import.meta.dirname, '../..')
  const [other = '', none = '', here = ''] = ['1', 'none', 'here'].map((name) => join(directory, name))
  symlinkSync(project, here)
  // As scripts/start.mjs does; a module of plain JavaScript has no types.
  const program = `import { asNamed } from '${project}/scripts/launch.mjs'; console.log(asNamed(process.argv.slice(1)))`
  const named = (...names: string[]) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', program, ...names], { encoding: 'utf8' }).trim()
  expect(named(other, none)).toBe(project)
  expect(named(other, here)).toBe(here)
})

test('an upgrade runs the Node of the new installation, where the old one ran its own', () => {
  const directory = mkdtempSync(join(runDirectory(), 'installed-'))
  const [old, next, bare] = [installation(directory, '1'), installation(directory, '2'), installation(directory, '3')]
  const node = (version: string) => join(directory, version, 'node_modules', 'node')
  for (const version of ['1', '2']) {
    mkdirSync(join(directory, version, 'node_modules'))
    writeFileSync(node(version), '')
  }
  expect(installedNode(next, old, node('1'))).toBe(node('2'))
  expect(installedNode(bare, old, node('1'))).toBe(node('1'))
  expect(installedNode(next, old, '/usr/bin/node')).toBe('/usr/bin/node')
  if (process.getuid?.() !== 0) return
  chownSync(node('2'), 4711, 4711)
  expect(() => installedNode(next, old, node('1'))).toThrow('belongs to user 4711')
})
