import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { runDirectory } from '../../support/directory.ts'
import { startSecondServer } from '../../support/secondserver.ts'
import { open, policies, policy, randomName } from '../support.ts'

/** A server whose operator has changed the defaults of sessions. */

const stack = new AsyncDisposableStack()
let writer: Database
let reader: Database
let url: string

function plainly(of: string): string {
  const plain = new URL(of)
  plain.username = plain.password = 'plain'
  return plain.href
}

const changed = [
  'completion_type = CHAIN',
  'sql_select_limit = 2',
  'sql_safe_updates = ON',
  "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE'",
  'autocommit = OFF',
  'TRANSACTION ISOLATION LEVEL READ UNCOMMITTED',
  "time_zone = '+05:00'",
  "collation_server = 'latin1_swedish_ci'",
  "init_connect = 'SET NAMES latin1'",
]

beforeAll(async () => {
  const directory = mkdtempSync(join(runDirectory(), 'defaults-'))
  const made = stack.use(await startSecondServer(directory, 'defaults'))
  const owner = await createConnection(made.url)
  for (const setting of changed) await owner.query(`SET GLOBAL ${setting}`)
  // The server runs init_connect for accounts that are no administrators.
  await owner.query("CREATE USER plain@'%' IDENTIFIED BY 'plain'")
  await owner.query("GRANT ALL ON `defaults`.* TO plain@'%'")
  await owner.end()
  url = plainly(made.url)
  writer = stack.use(await open(url, { poolSize: 1 }))
  await writer.migrate()
  reader = stack.use(await open(url, { poolSize: 1 }))
}, 60_000)
afterAll(() => stack.disposeAsync())

test('a reader sees every change, whatever its connection did before', async () => {
  const table = writer.table(policies)
  const { id } = await writer.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
  const text = async () => (await reader.read((q) => reader.table(policies).get(q, id)))?.text
  for (const next of ['1', '2', '3']) {
    expect(await text()).toBe(String(Number(next) - 1))
    await writer.transaction(async (tx) => {
      const row = await table.get(tx, id)
      if (row) await table.update(tx, row, { text: next })
    })
    expect(await text()).toBe(next)
    expect((await reader.snapshot((q) => reader.table(policies).get(q, id)))?.text).toBe(next)
    expect((await reader.transaction((tx) => reader.table(policies).get(tx, id)))?.text).toBe(next)
  }
})

test('a text is stored as it is, whatever its alphabet, alone or with others', async () => {
  const table = writer.table(policies)
  const texts = ['Ω', 'é😀', '\u{10FFFF}']
  for (const some of [texts.slice(0, 1), texts]) {
    const rows = some.map((text) => policy(randomName(), text))
    await writer.transaction((tx) => table.insertMany(tx, rows))
    const sql = await createConnection({ uri: url, charset: 'utf8mb4' })
    await sql.query('SET sql_select_limit = 9')
    const [stored] = await sql.query(
      'SELECT HEX(text) AS hex FROM policies WHERE name IN (?) ORDER BY FIELD(name, ?)',
      [rows.map(({ name }) => name), rows.map(({ name }) => name)],
    )
    await sql.end()
    expect(stored).toEqual(some.map((text) => ({ hex: Buffer.from(text).toString('hex').toUpperCase() })))
  }
})

test('a listing is whole, and matching rows are removed', async () => {
  const table = writer.table(policies)
  const mount = randomName()
  const rows = Array.from({ length: 5 }, (_, n) => ({ ...policy(`"${n}'\\${mount}`), mount }))
  await writer.transaction((tx) => table.insertMany(tx, rows))
  const list = () => reader.read((q) => reader.table(policies).list(q, { mount }, { by: 'name', limit: 9 }))
  expect((await list()).map(({ name }) => name)).toEqual(rows.map(({ name }) => name))
  expect((await reader.read((q) => reader.table(policies).members(q))).length).toBeGreaterThan(4)
  expect(await writer.transaction((tx) => table.removeWhere(tx, { mount }))).toBe(5)
  expect(await list()).toEqual([])
})
