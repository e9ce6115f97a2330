import { execFile, spawnSync } from 'node:child_process'
import fs, { existsSync, lstatSync, lutimesSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { alone } from '../../src/turns/alone.ts'
import { makeMarker } from '../../src/turns/marker.ts'
import { until } from '../attack/nodes.ts'
import { newDirectory } from '../hsm/support/open.ts'

const execute = promisify(execFile)

test('a turn ends with its work, also when that throws', () => {
  const directory = newDirectory()
  const fail = () => {
    expect(readdirSync(directory)).toEqual(['turn'])
    throw new Error('no')
  }
  expect(() => alone(directory, 'turn', fail)).toThrow('no')
  expect(readdirSync(directory)).toEqual([])
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('what a process left that is dead does not stand in the way', () => {
  const directory = newDirectory()
  makeMarker(join(directory, 'turn'), String(spawnSync('true').pid))
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('nor what is so old that its number may be that of another process by now', () => {
  const directory = newDirectory()
  const path = join(directory, 'turn')
  makeMarker(path, String(process.pid))
  lutimesSync(path, 0, 0)
  expect(alone(directory, 'turn', () => 1)).toBe(1)
})

test('while somebody else is at it nothing is done', () => {
  const directory = newDirectory()
  makeMarker(join(directory, 'turn'), String(process.ppid))
  let done = false
  const work = () => {
    done = true
  }
  expect(() => alone(directory, 'turn', work)).toThrow('another process')
  expect(done).toBe(false)
})

test('two who find the same file left behind do not both have their turn', async () => {
  const directory = newDirectory()
  makeMarker(join(directory, 'turn'), String(spawnSync('true').pid))
  const script = join(import.meta.dirname, 'support/turn.ts')
  const take = (pace: string) => execute(process.execPath, [script, directory, pace])
  const slow = take('slow')
  await until(() => existsSync(join(directory, 'slow')))
  await Promise.all([slow, take('')])
  expect(readdirSync(directory)).toEqual(['slow'])
}, 60_000)

test('who dies while taking a file away is followed by another', () => {
  const directory = newDirectory()
  const path = join(directory, 'turn')
  const dead = String(spawnSync('true').pid)
  makeMarker(path, dead)
  const { ino, mtimeNs } = lstatSync(path, { bigint: true })
  for (const taker of [0, 1]) makeMarker(`${path}.${ino}-${mtimeNs}.${taker}`, dead)
  expect(alone(directory, 'turn', () => 1)).toBe(1)
  expect(readdirSync(directory)).toEqual([])
})

test('a turn that was taken away for its age does not end the one after it', () => {
  const directory = newDirectory()
  const path = join(directory, 'turn')
  alone(directory, 'turn', () => {
    lutimesSync(path, 0, 0)
    makeMarker(join(directory, 'next'), String(process.ppid))
    renameSync(join(directory, 'next'), path)
  })
  expect(readdirSync(directory)).toEqual(['turn'])
})

test('the marker of a turn takes no room of the disk', () => {
  const directory = newDirectory()
  expect(alone(directory, 'turn', () => lstatSync(join(directory, 'turn')).isSymbolicLink())).toBe(true)
})

test('a file system without symbolic links has files in their place', () => {
  const directory = newDirectory()
  const path = join(directory, 'turn')
  const { symlinkSync } = fs
  fs.symlinkSync = () => {
    throw Object.assign(new Error('no links'), { code: 'EPERM' })
  }
  syncBuiltinESMExports()
  try {
    writeFileSync(path, String(spawnSync('true').pid))
    expect(alone(directory, 'turn', () => lstatSync(path).isFile())).toBe(true)
    expect(readdirSync(directory)).toEqual([])
    writeFileSync(path, String(process.ppid))
    expect(() => alone(directory, 'turn', () => 1)).toThrow('another process')
  } finally {
    fs.symlinkSync = symlinkSync
    syncBuiltinESMExports()
  }
})
