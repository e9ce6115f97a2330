import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { defineTable, type Row } from '../../src/store/table.ts'
import { type Bench, createBench, mounts, policies, policy, randomName, testMac } from './support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const mountFields = () => ({
  path: `${randomName()}/`,
  type: 'transit',
  description: 'd',
  accessor: randomName(),
  config: {},
  local: false,
  sealWrap: false,
  touched: false,
  createdAt: 1,
  mount: crypto.randomUUID(),
})

const insertMount = (): Promise<Row<typeof mounts>> =>
  bench.database.transaction((tx) => bench.database.table(mounts).insert(tx, mountFields()))

const insertPolicy = (): Promise<Row<typeof policies>> =>
  bench.database.transaction((tx) => bench.database.table(policies).insert(tx, policy(randomName())))

const read = (id: string) => bench.database.read((q) => bench.database.table(policies).get(q, id))

describe('the owner of the database', () => {
  test('cannot edit any column of a sealed row', async () => {
    const table = bench.database.table(mounts)
    const columns = await bench.sql(
      `SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM information_schema.columns
        WHERE table_schema = DATABASE() AND table_name = 'mounts' AND column_name <> 'id'`,
    )
    expect(columns.length).toBeGreaterThan(15)
    const edited = new Set<string>()
    for (const { name, type, nullable } of columns) {
      const edits = /int/.test(type)
        ? ['`{}` + 1', '-`{}` - 1']
        : type === 'binary'
          ? ['REVERSE(`{}`)', "X'00'"]
          : ["INSERT(COALESCE(`{}`, ''), 1, 1, 'x')", "CONCAT(COALESCE(`{}`, ''), ' ')", "IF(`{}` = '', 'y', '')"]
      if (nullable === 'YES') edits.push("IF(`{}` IS NULL, 'null', NULL)")
      for (const edit of edits) {
        const { id } = await insertMount()
        const stored = async () =>
          (await bench.sql(`SELECT HEX(\`${name}\`) AS hex FROM mounts WHERE id = ?`, [id]))[0]?.hex
        const before = await stored()
        await bench.sql(`UPDATE mounts SET \`${name}\` = ${edit.replaceAll('{}', name)} WHERE id = ?`, [id])
        if ((await stored()) === before) continue // a blank that did not fit was cut off
        edited.add(name)
        const reads = [
          () => bench.database.read((q) => table.get(q, id)),
          () => bench.database.read((q) => table.list(q, { id }, { by: 'path', limit: 9 })),
          () =>
            bench.database.transaction(async (tx) => {
              const row = await table.get(tx, id)
              if (row) await table.update(tx, row, { description: 'healed' })
            }),
        ]
        for (const attempt of reads) await expect(attempt(), `${name} = ${edit}`).rejects.toBeInstanceOf(DamagedRow)
      }
    }
    expect(edited.size).toBe(columns.length)
  })

  test('cannot copy a row under another id', async () => {
    const { id } = await insertPolicy()
    const copy = crypto.randomUUID()
    const others = 'mount, rev, epoch, mac_key_id, mac_format, mac, name, text, created_at, updated_at'
    await bench.sql(
      `INSERT INTO policies (id, namespace, ${others}) SELECT ?, 'elsewhere', ${others} FROM policies WHERE id = ?`,
      [copy, id],
    )
    await expect(read(copy)).rejects.toBeInstanceOf(DamagedRow)
  })

  test('cannot move a row to another mount', async () => {
    const [mine, other] = [await insertMount(), await insertMount()]
    await bench.sql('UPDATE mounts SET mount = ? WHERE id = ?', [other.mount, mine.id])
    const table = bench.database.table(mounts)
    const listed = bench.database.read((q) => table.list(q, { mount: other.mount }, { by: 'path', limit: 9 }))
    await expect(listed).rejects.toBeInstanceOf(DamagedRow)
  })

  test('cannot put a row into another table of the same columns', async () => {
    const twin = defineTable('twins', policies.columns, { sealed: true })
    const { id } = await insertPolicy()
    await bench.sql('CREATE TABLE twins LIKE policies')
    await bench.sql('INSERT INTO twins SELECT * FROM policies WHERE id = ?', [id])
    const table = bench.database.table(twin)
    await expect(bench.database.read((q) => table.get(q, id))).rejects.toBeInstanceOf(DamagedRow)
    await bench.sql('DROP TABLE twins')
  })

  test('cannot answer for one name with the row of another by loosening a collation', async () => {
    const name = randomName()
    const table = bench.database.table(policies)
    await bench.database.transaction((tx) => table.insert(tx, policy(`${name}a`)))
    await bench.sql(
      'ALTER TABLE policies MODIFY name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL',
    )
    const found = bench.database.read((q) => table.find(q, { name: `${name}A` }))
    expect(await found).toBeUndefined()
    await bench.sql('ALTER TABLE policies MODIFY name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL')
  })

  test('can put back an older row where no head lists it, and that is all', async () => {
    const table = bench.database.table(policies)
    const old = await insertPolicy()
    await bench.sql('CREATE TABLE kept LIKE policies')
    await bench.sql('INSERT INTO kept SELECT * FROM policies WHERE id = ?', [old.id])
    await bench.database.transaction(async (tx) => {
      const row = await table.get(tx, old.id)
      if (row) await table.update(tx, row, { text: 'stricter' })
    })
    await bench.sql('REPLACE INTO policies SELECT * FROM kept')
    expect(await read(old.id)).toEqual(old)
    await bench.sql('UPDATE policies SET rev = 2 WHERE id = ?', [old.id])
    await expect(read(old.id)).rejects.toBeInstanceOf(DamagedRow)
    await bench.sql('DROP TABLE kept')
  })
})

/** A database of its own that tells which rows its MAC has verified. */
async function counting(): Promise<{ database: Database; verified: ('small' | 'large')[] }> {
  const database = await bench.another()
  const mac = testMac()
  const verified: ('small' | 'large')[] = []
  database.useMac({
    ...mac,
    verify(keyId, message, tag) {
      verified.push(message.length > 16_384 ? 'large' : 'small')
      return mac.verify(keyId, message, tag)
    },
  })
  return { database, verified }
}

test('an unchanged row is verified once; a large one each time, and it evicts no other', async () => {
  const { database, verified } = await counting()
  const small = await insertPolicy()
  const large = await bench.database.transaction((tx) =>
    bench.database.table(policies).insert(tx, policy(randomName(), 'x'.repeat(120_000))),
  )
  const get = (id: string) => database.read((q) => database.table(policies).get(q, id))
  await get(small.id)
  for (let n = 0; n < 200; n++) await get(large.id)
  await get(small.id)
  expect(verified).toEqual(['small', ...Array.from({ length: 200 }, () => 'large')])
})

test('a row is not verified by the process that wrote it, unless it was edited since', async () => {
  const { database, verified } = await counting()
  const table = database.table(mounts)
  const written = await database.transaction((tx) =>
    table.insert(tx, { ...mountFields(), options: { a: 'ü', b: [1.5, null] }, touched: true }),
  )
  const get = () => database.read((q) => table.get(q, written.id))
  expect(await get()).toEqual(written)
  const updated = await database.transaction(async (tx) => {
    const row = await table.get(tx, written.id)
    return row && table.update(tx, row, { description: 'other' })
  })
  expect(await get()).toEqual(updated)
  expect(verified).toEqual([])

  await bench.sql('UPDATE mounts SET touched = 0 WHERE id = ?', [written.id])
  await expect(get()).rejects.toBeInstanceOf(DamagedRow)
  await bench.sql('UPDATE mounts SET touched = 1, rev = 1 WHERE id = ?', [written.id])
  await expect(get()).rejects.toBeInstanceOf(DamagedRow)
  expect(verified).toEqual(['small', 'small'])
})
