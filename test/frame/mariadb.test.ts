import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { expect, test } from 'vitest'
import { startMariaDb } from '../../scripts/embedded/mariadb.ts'
import { runDirectory } from '../support/directory.ts'

const fresh = (): string => mkdtempSync(join(runDirectory(), 'embedded-'))
const start = (directory: string) => startMariaDb({ directory, schema: 'strongroom', durable: true })

test('a socket path above 107 bytes moves to a short directory, which goes with the server; the data stays', async () => {
  const directory = join(fresh(), 'with a space', 'long'.repeat(25))
  const first = await start(directory)
  expect(Buffer.byteLength(join(directory, 'mariadb.sock'))).toBeGreaterThan(107)
  expect(Buffer.byteLength(first.socket)).toBeLessThanOrEqual(107)
  expect(statSync(dirname(first.socket)).mode & 0o777).toBe(0o700)
  const connection = await createConnection(first.url)
  await connection.query('CREATE TABLE kept (a INT)')
  await connection.end()
  await first[Symbol.asyncDispose]()
  expect(existsSync(dirname(first.socket))).toBe(false)

  await using second = await start(directory)
  const again = await createConnection(second.url)
  expect((await again.query('SHOW TABLES'))[0]).toHaveLength(1)
  await again.end()
})

test('it listens on no port, flushes every commit, and lies in a directory of its owner alone', async () => {
  const directory = fresh()
  await using mariadb = await start(directory)
  expect(mariadb.socket).toBe(join(directory, 'mariadb.sock'))
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(statSync(join(directory, 'data')).mode & 0o777).toBe(0o700)
  const connection = await createConnection(mariadb.url)
  const [rows] = await connection.query(
    'SELECT @@skip_networking AS off, @@innodb_flush_log_at_trx_commit AS flush, @@innodb_doublewrite AS doublewrite',
  )
  expect(rows).toEqual([{ off: 1, flush: 1, doublewrite: 1 }])
  await connection.end()
})

test('it ends with the process that started it, even when that is killed', async () => {
  const module = join(import.meta.dirname, '../../scripts/embedded/mariadb.ts')
  const options = JSON.stringify({ directory: fresh(), schema: 'strongroom', durable: true })
  const script = `import { startMariaDb } from '${module}'
    console.log((await startMariaDb(${options})).process.pid); setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(parent.stdout, 'data')
  const pid = Number(line)
  expect(process.kill(pid, 0)).toBe(true)
  parent.kill('SIGKILL')
  await expect.poll(() => running(pid), { timeout: 20_000 }).toBe(false)
})

function running(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a server that cannot start gives the reason, with the end of its log', async () => {
  const directory = fresh()
  await (await start(directory))[Symbol.asyncDispose]()
  rmSync(join(directory, 'data', 'ibdata1'))
  await expect(start(directory)).rejects.toThrow(/MariaDB did not start.*Aborting/s)
})
