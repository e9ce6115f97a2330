import { spawnSync } from 'node:child_process'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { alone } from '../../src/hsm/session/alone.ts'
import { newDirectory } from './support/open.ts'

test('a turn ends with its work, also when that throws', () => {
  const directory = newDirectory()
  const fail = () => {
    expect(existsSync(join(directory, 'turn'))).toBe(true)
    throw new Error('no')
  }
  expect(() => alone(directory, 'turn', fail)).toThrow('no')
  expect(existsSync(join(directory, 'turn'))).toBe(false)
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('what a process left that is dead does not stand in the way', () => {
  const directory = newDirectory()
  writeFileSync(join(directory, 'turn'), String(spawnSync('true').pid))
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('nor what is so old that its number may be that of another process by now', () => {
  const directory = newDirectory()
  const path = join(directory, 'turn')
  writeFileSync(path, String(process.pid))
  utimesSync(path, 0, 0)
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('while somebody else is at it nothing is done', () => {
  const directory = newDirectory()
  writeFileSync(join(directory, 'turn'), String(process.ppid))
  let done = false
  const work = () => {
    done = true
  }
  expect(() => alone(directory, 'turn', work)).toThrow('another process')
  expect(done).toBe(false)
})
