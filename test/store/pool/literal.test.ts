import fc from 'fast-check'
import type { RowDataPacket } from 'mysql2'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withLiterals } from '../../../src/store/pool/literal.ts'
import type { Stored } from '../../../src/store/table.ts'
import { type Bench, createBench, policies, policy, randomName } from '../support.ts'

let bench: Bench
let sql: Awaited<ReturnType<typeof createConnection>>
beforeAll(async () => {
  bench = await createBench()
  sql = await createConnection({ uri: bench.url, multipleStatements: true, charset: 'utf8mb4' })
})
afterAll(async () => {
  await sql?.end()
  await bench?.[Symbol.asyncDispose]()
})

const hostile = [
  "'; DROP TABLE policies; -- ",
  '\\',
  "\\'",
  '?',
  '_utf8mb4',
  '\0',
  'é😀\n',
  ' a ',
  '',
  '%_',
  '__proto__',
  '/*! 1 */',
  '`',
  '"',
]

async function echoed(values: Stored[]): Promise<unknown> {
  // Named: an unnamed item is named after its text, and the driver refuses some names.
  const text = withLiterals({ sql: 'SELECT ? AS text, ? AS bytes, ? AS number, ? AS nothing', values })
  const [rows] = await sql.query<RowDataPacket[][]>({ sql: text, rowsAsArray: true, supportBigNumbers: true })
  return rows[0]
}

test('every text, bytes and number comes back from the database unchanged', async () => {
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string(), fc.mixedCase(fc.constantFrom(...hostile)))
  const property = fc.asyncProperty(text, fc.uint8Array(), fc.maxSafeInteger(), async (text, bytes, number) => {
    const values = [text, Buffer.from(bytes), number, null]
    expect(await echoed(values)).toEqual(values)
  })
  await fc.assert(property, { numRuns: 300 })
  for (const one of hostile) {
    for (const two of hostile)
      expect(await echoed([one + two, Buffer.from(two), 0, null])).toHaveProperty('0', one + two)
  }
})

test('a text is compared by the index of its column', async () => {
  const id = crypto.randomUUID()
  const table = bench.database.table(policies)
  const row = await bench.database.transaction((tx) => table.insert(tx, { ...policy(randomName()), id }))
  const statement = {
    sql: 'EXPLAIN FORMAT = TRADITIONAL SELECT * FROM policies WHERE id = ? AND rev = ?',
    values: [row.id, row.rev],
  }
  const [[plan]] = await sql.query<RowDataPacket[]>(withLiterals(statement))
  // MariaDB answers text, MySQL a number.
  expect({ ...plan, rows: Number(plan?.rows) }).toMatchObject({ key: 'PRIMARY', rows: 1 })
})

test('a statement with another number of values, or a number that is not whole, is refused', () => {
  expect(() => withLiterals({ sql: 'SELECT ?', values: [] })).toThrow(TypeError)
  expect(() => withLiterals({ sql: 'SELECT ?', values: [1, 2] })).toThrow(TypeError)
  expect(() => withLiterals({ sql: 'SELECT ?', values: [1.5] })).toThrow(TypeError)
})
