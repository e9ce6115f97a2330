import fc from 'fast-check'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Connection } from '../../../src/store/pool/connection.ts'
import { type Parameterised, parameterised } from '../../../src/store/pool/literal.ts'
import { Pool } from '../../../src/store/pool/pool.ts'
import { parseTargets } from '../../../src/store/pool/target.ts'
import { clustered, onMySql } from '../../support/engine.ts'
import { type Bench, createBench, randomName } from '../support.ts'

/** Transactions of one round trip as MariaDB gets them: one compound statement of statements that the session has prepared. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const timeouts = { connectMilliseconds: 1000, statementMilliseconds: 8000 }

/** Runs work on a new session. */
async function session<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
  const targets = parseTargets(bench.url)
  await using pool = new Pool({ targets, limit: 1, queueLimit: 4, tls: undefined, timeouts, clock: systemClock })
  return await pool.use(work)
}

const add = (name: string, used: number): Parameterised =>
  parameterised({ sql: 'INSERT INTO usage_counters (material, used) VALUES (?, ?)', values: [name, used] })
const look = (name: string) => `used FROM usage_counters WHERE material = '${name}'`
const used = async (name: string) =>
  (await bench.sql('SELECT used FROM usage_counters WHERE material = ?', [name])).map((row) => Number(row.used))

/** What the session has been sent as text: compound statements, statements to prepare, prepared ones to run. */
async function sent(connection: Connection): Promise<number[]> {
  const rows = await connection.rows(`SHOW SESSION STATUS WHERE Variable_name IN
    ('Com_compound_sql', 'Com_prepare_sql', 'Com_execute_sql', 'Com_rollback')`)
  const counts = new Map(rows.map(([name, count]) => [name, Number(count)]))
  const names = ['Com_compound_sql', 'Com_prepare_sql', 'Com_execute_sql', 'Com_rollback']
  return names.map((name) => counts.get(name) ?? Number.NaN)
}

describe.skipIf(clustered || onMySql)('a transaction of one round trip', () => {
  test('is a compound statement, and the session prepares what recurs in it once', () =>
    session(async (connection) => {
      const [one, two] = [randomName(), randomName()]
      const commit = (name: string, n: number) =>
        connection.commit([add(name, n), parameterised({ sql: 'SELECT ? AS n', values: [n] })], {
          opened: false,
          next: look(one),
        })
      expect(await commit(one, 1)).toEqual({ given: [[[1]]], sure: true, rows: [[1]] })
      expect(await sent(connection)).toEqual([1, 3, 3, 0])
      expect(await commit(two, 2)).toEqual({ given: [[[2]]], sure: true, rows: [[1]] })
      expect(await sent(connection)).toEqual([2, 3, 6, 0])
      expect([await used(one), await used(two)]).toEqual([[1], [2]])
    }))

  test('that fails has changed nothing, and says which of its statements failed', () =>
    session(async (connection) => {
      const [taken, fresh] = [randomName(), randomName()]
      await connection.commit([add(taken, 1)], { opened: false })
      const twice = [add(fresh, 1), add(taken, 2), add(randomName(), 3)]
      await expect(connection.commit(twice, { opened: false })).rejects.toMatchObject({ number: 1062, done: 1 })
      await connection.command('ROLLBACK')
      expect([await used(taken), await used(fresh)]).toEqual([[1], []])
      expect(await connection.commit([add(fresh, 4)], { opened: false })).toMatchObject({ sure: true })
      expect(await used(fresh)).toEqual([4])
    }))

  test('that fails for something that passes is made all the same', () =>
    session(async (connection) => {
      const name = randomName()
      // The first run sees an empty variable, the second one what the first has left in it.
      const once = 'SELECT IF(@ran := COALESCE(@ran, 0) + 1, IF(@ran > 1, 1, ~0 + 1), 0) AS asserted'
      expect(await connection.commit([add(name, 1), once], { opened: false })).toMatchObject({ sure: true })
      expect(await used(name)).toEqual([1])
      const [compounds, , , rollbacks] = await sent(connection)
      expect([compounds, rollbacks]).toEqual([1, 1])
    }))

  test('that names a table which is not there leaves a session that can go on', () =>
    session(async (connection) => {
      const name = randomName()
      const nowhere = parameterised({ sql: 'INSERT INTO nowhere VALUES (?)', values: [1] })
      await expect(connection.commit([add(name, 1), nowhere], { opened: false })).rejects.toThrow('nowhere')
      await connection.command('ROLLBACK')
      expect(await connection.commit([add(name, 2)], { opened: false })).toMatchObject({ sure: true })
      expect(await used(name)).toEqual([2])
    }))

  test('follows a table that has got another column since', () =>
    session(async (connection) => {
      const [one, two] = [randomName(), randomName()]
      await connection.commit([add(one, 1)], { opened: false })
      await bench.sql('ALTER TABLE usage_counters ADD COLUMN noted INT NULL')
      await connection.commit([add(two, 2)], { opened: false })
      await bench.sql('ALTER TABLE usage_counters DROP COLUMN noted')
      expect([await used(one), await used(two)]).toEqual([[1], [2]])
    }))

  test('of more than 64 KiB goes statement by statement', () =>
    session(async (connection) => {
      const name = randomName()
      await connection.commit([add(name, 8), `SELECT LENGTH('${'a'.repeat(2 ** 16)}') AS n`], { opened: false })
      expect(await sent(connection)).toEqual([0, 0, 0, 0])
      expect(await used(name)).toEqual([8])
    }))

  test('that has waited for a lock in vain is not made once more', () =>
    session(async (connection) => {
      const [held, name] = [randomName(), randomName()]
      await connection.commit([add(held, 1)], { opened: false })
      const holder = await createConnection(bench.url)
      await holder.query('START TRANSACTION')
      await holder.query('SELECT * FROM usage_counters WHERE material = ? FOR UPDATE', [held])
      const hurried = `SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE usage_counters SET used = 2 WHERE material = '${held}'`
      const refused = connection.commit([add(name, 1), hurried], { opened: false })
      await expect(refused).rejects.toMatchObject({ number: 1205 })
      await holder.end()
      expect((await sent(connection))[0]).toBe(2)
      await connection.command('ROLLBACK')
      expect((await sent(connection))[3]).toBe(1)
      expect([await used(held), await used(name)]).toEqual([[1], []])
    }))

  test('prepares 64 statements at most', () =>
    session(async (connection) => {
      for (let n = 0; n < 70; n++) {
        const one = parameterised({ sql: `SELECT ? AS n${n}`, values: [n] })
        expect(await connection.commit([one], { opened: false })).toMatchObject({ given: [[[n]]] })
      }
      expect(await sent(connection)).toEqual([70, 64, 64, 0])
    }))

  test('passes every value on unchanged', () =>
    session(async (connection) => {
      const name = randomName()
      await connection.commit([add(name, 0)], { opened: false })
      const hostile = ["'; DROP TABLE policies; END; -- ", '\\', '?', '\0', 'é😀\n', '', '`', '/*! 1 */', '; COMMIT']
      const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...hostile))
      const property = fc.asyncProperty(text, fc.uint8Array(), fc.maxSafeInteger(), async (text, bytes, number) => {
        const values = [text, Buffer.from(bytes), number, null]
        const one = parameterised({ sql: 'SELECT ? AS text, ? AS bytes, ? AS number, ? AS nothing', values })
        expect(await connection.commit([one], { opened: false })).toMatchObject({ given: [[values]] })
      })
      await fc.assert(property, { numRuns: 200 })
    }))
})
