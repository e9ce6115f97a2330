import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { firstStart } from '../../scripts/embedded/first.ts'
import { lockDirectory } from '../../scripts/embedded/lock.ts'
import { embeddedToken } from '../../scripts/embedded/token.ts'
import { runDirectory } from '../support/directory.ts'

const fresh = (): string => mkdtempSync(join(runDirectory(), 'data-'))

test('a data directory refuses a second start while the first one lives', () => {
  const directory = fresh()
  lockDirectory(directory)
  expect(() => lockDirectory(directory)).toThrow(`${directory} is in use by the running process ${process.pid}`)
})

test('a start after a kill waits for processes left running by the killed one', async () => {
  const directory = fresh()
  const module = join(import.meta.dirname, '../../scripts/embedded/lock.ts')
  const ended = join(directory, 'ended')
  // A process that takes the lock, hands it to a child that lives for a second, and dies.
  const script = `import { spawn } from 'node:child_process'
    import { lockDirectory } from '${module}'
    const lock = lockDirectory('${directory}')
    spawn('sh', ['-c', 'sleep 1; touch ${ended}'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', lock] })
    process.kill(process.pid, 'SIGKILL')`
  await once(spawn(process.execPath, ['--input-type=module-typescript', '-e', script], { stdio: 'inherit' }), 'exit')
  lockDirectory(directory)
  expect(existsSync(ended)).toBe(true)
})

test('an unfinished first start is made again from nothing, a finished one never', () => {
  const directory = fresh()
  expect(firstStart(directory)).toBeDefined()
  mkdirSync(join(directory, 'mariadb'))
  writeFileSync(join(directory, 'mariadb', 'half'), '')
  const again = firstStart(directory)
  expect(existsSync(join(directory, 'mariadb'))).toBe(false)
  for (const part of ['mariadb', 'token']) mkdirSync(join(directory, part))
  again?.finished()
  writeFileSync(join(directory, 'mariadb', 'whole'), '')
  expect(firstStart(directory)).toBeUndefined()
  expect(existsSync(join(directory, 'mariadb', 'whole'))).toBe(true)
})

test('a directory that lost its database is refused, never started afresh over its token', () => {
  const directory = fresh()
  for (const part of ['token', 'state']) mkdirSync(join(directory, part))
  expect(() => firstStart(directory)).toThrow('damaged: mariadb is not there any more')
  expect(readdirSync(directory).sort()).toEqual(['state', 'token'])
})

test('the token is made once, with a random PIN that only its owner can read', () => {
  const directory = join(fresh(), 'token')
  const token = embeddedToken(directory)
  const pin = readFileSync(token.pinFile, 'utf8')
  expect(pin).toMatch(/^[0-9a-f]{32}\n$/)
  expect(statSync(token.pinFile).mode & 0o777).toBe(0o600)
  expect(embeddedToken(directory)).toEqual(token)
  expect(readFileSync(token.pinFile, 'utf8')).toBe(pin)
  expect(readdirSync(join(directory, 'tokens'))).toHaveLength(1)
  expect(statSync(directory).mode & 0o777).toBe(0o700)
})
