import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test } from 'vitest'
import type { Logger } from '../../src/log.ts'
import { migrations } from '../../src/store/migrations/list.ts'
import type { Migration } from '../../src/store/migrations/migration.ts'
import { createDatabase } from '../support/database.ts'
import { createBench, open, policies, quiet, turned } from './support.ts'

const later = (number: number, minReader: number, run: Migration['run'] = async () => undefined): Migration => ({
  number,
  minReader,
  run,
})

const newest = migrations.length

/** Rows with the column `seq`, in a statement that every server knows. */
const sequence = (to: number): string =>
  `(WITH RECURSIVE numbers (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM numbers WHERE seq < ${to})
    SELECT seq FROM numbers) AS sequence`

test('a new schema is made once, by one of the processes that ask at once', async () => {
  await using held = await createDatabase()
  let runs = 0
  const counted = migrations.map((migration) =>
    later(migration.number, migration.minReader, async (step) => {
      runs++
      await migration.run(step)
    }),
  )
  const crowd = await Promise.all(
    Array.from({ length: 4 }, (_, n) => open(turned(held.urls, n), { migrations: counted })),
  )
  expect(await crowd[0]?.schemaStatus()).toMatchObject({ state: 'empty', version: 0 })
  await Promise.all(crowd.map((database) => database.migrate()))
  for (const database of crowd) {
    expect(await database.schemaStatus()).toMatchObject({ version: newest, known: newest, state: 'current' })
    await database[Symbol.asyncDispose]()
  }
  expect(runs).toBe(newest)
})

test('a migration that broke off is finished by the next process', async () => {
  await using held = await createDatabase()
  const broken = later(1, 1, async (step) => {
    let left = 3
    await migrations[0]?.run({
      async statement(sql) {
        if (left-- === 0) throw new Error('the power failed')
        await step.statement(sql)
      },
    })
  })
  {
    await using first = await open(held.url, { migrations: [broken] })
    await expect(first.migrate()).rejects.toThrow('power')
  }
  await using second = await open(held.url)
  await second.migrate()
  expect(await second.read((q) => second.table(policies).count(q, {}))).toBe(0)
})

test('who waits for the migration of another process says so once in the log', async () => {
  await using held = await createDatabase()
  const said: string[] = []
  const log = { ...quiet, warn: (text: string) => void said.push(text) } as unknown as Logger
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const slow = [
    later(1, 1, () => {
      begin()
      return gate
    }),
  ]
  await using first = await open(held.url, { migrations: slow })
  await using second = await open(held.url, { migrations: slow, log })
  const made = first.migrate()
  await begun
  const waited = second.migrate()
  await expect.poll(() => said).toHaveLength(1)
  await delay(600)
  release()
  await Promise.all([made, waited])
  expect(said).toEqual(['another process changes the schema, or has died meanwhile: waiting for it'])
})

test('a migration stops before its next statement when another process has taken it over', async () => {
  await using held = await createDatabase()
  await using connection = await createConnection(held.url)
  const robbed = later(1, 1, async (step) => {
    await step.statement('CREATE TABLE before_it (id INT PRIMARY KEY)')
    await connection.query("UPDATE job_leases SET holder = 'another', fence = fence + 1 WHERE name = 'migrate'")
    await step.statement('CREATE TABLE after_it (id INT PRIMARY KEY)')
  })
  await using database = await open(held.url, { migrations: [robbed] })
  await expect(database.migrate()).rejects.toThrow('another process has taken over the migration')
  const [tables] = await connection.query<RowDataPacket[]>("SHOW TABLES LIKE '%\\_it'")
  expect(tables.flatMap((row) => Object.values(row))).toEqual(['before_it'])
  expect(await database.schemaStatus()).toMatchObject({ state: 'empty' })
})

test('rows that exist when tallies begin are counted once, however often the migration is interrupted', async () => {
  await using held = await createDatabase()
  {
    await using before = await open(held.url, { migrations: migrations.slice(0, 7) })
    await before.migrate()
  }
  await using connection = await createConnection(held.url)
  await connection.query(`INSERT INTO leases SELECT UUID(), '', 'm', 1, 1, '', 1, REPEAT('x', 32), CONCAT('a', seq), '',
    '{}', 0, 1, 1, 1, 1, NULL, 0, 1 FROM ${sequence(1000)}`)
  const broken = migrations.map((migration) =>
    later(migration.number, migration.minReader, async (step) => {
      await migration.run(step)
      if (migration.number === 8) throw new Error('the power failed')
    }),
  )
  {
    await using first = await open(held.url, { migrations: broken })
    await expect(first.migrate()).rejects.toThrow('power')
  }
  await using second = await open(held.url)
  await second.migrate()
  expect([await second.tally('leases'), await second.tally('leases-m')]).toEqual([1000, 1000])
  const [keys] = await connection.query<RowDataPacket[]>("SHOW KEYS FROM materials WHERE Column_name = 'residence'")
  expect(keys).toHaveLength(1)
})

test('tokens that are there when they begin to be counted are counted', async () => {
  await using held = await createDatabase()
  {
    await using before = await open(held.url, { migrations: migrations.slice(0, 18) })
    await before.migrate()
  }
  await using connection = await createConnection(held.url)
  await connection.query(`INSERT INTO tokens SELECT UUID(), '', '', 1, 1, '', 1, REPEAT('x', 32), UNHEX(LPAD(HEX(seq), 64, '0')),
    CONCAT('a', seq), NULL, '', '[]', NULL, '', 'service', 0, 1, 1, 0, 0, 0, 1, NULL, NULL, 'active' FROM ${sequence(100)}`)
  await using after = await open(held.url)
  await after.migrate()
  await after.migrate()
  expect(await after.tally('tokens')).toBe(100)
})

test('a program serves on the next schema as long as that says it can be read, and not beyond', async () => {
  await using bench = await createBench()
  const expanded = [...migrations, later(newest + 1, 1)]
  await using newer = await bench.another({ migrations: expanded })
  await expect(newer.start()).rejects.toMatchObject({ status: 503 })
  await newer.migrate()
  await newer.start()
  expect(await bench.database.schemaStatus()).toMatchObject({
    state: 'ahead',
    version: newest + 1,
    known: newest,
  })
  await bench.database.migrate()
  await bench.database.start()

  await using contracted = await bench.another({ migrations: [...expanded, later(newest + 2, newest + 1)] })
  await contracted.migrate()
  expect((await newer.schemaStatus()).state).toBe('ahead')
  await using old = await bench.another()
  expect((await old.schemaStatus()).state).toBe('unreadable')
  const message = expect.stringContaining(`knows version ${newest + 1}`)
  await expect(old.start()).rejects.toMatchObject({ status: 503, message })
  await expect(old.migrate()).rejects.toMatchObject({ status: 503 })
})

test('every table has a primary key and is InnoDB', async () => {
  await using bench = await createBench()
  const odd = await bench.sql(
    `SELECT t.table_name FROM information_schema.tables t LEFT JOIN information_schema.table_constraints c
        ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'
      WHERE t.table_schema = DATABASE() AND (c.constraint_name IS NULL OR t.engine <> 'InnoDB')`,
  )
  expect(odd).toEqual([])
})
