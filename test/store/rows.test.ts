import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DamagedRow, DuplicateRow } from '../../src/store/faults.ts'
import { headsTable } from '../../src/store/sealed/heads.ts'
import { column, defineTable } from '../../src/store/table.ts'
import {
  type Bench,
  counters,
  createBench,
  mounts,
  open,
  policies,
  policy,
  quiet,
  randomName,
  testMac,
} from './support.ts'

/** Without seals, as listings of names read them. */
const traces = defineTable(
  'policies',
  { id: column.text(), mount: column.text(), name: column.text() },
  { sealed: false },
)

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

describe('rows', () => {
  test('an inserted row is read back whole', async () => {
    const { database } = bench
    const table = database.table(mounts)
    const row = await database.transaction((tx) =>
      table.insert(tx, {
        path: 'größe/',
        type: 'transit',
        description: '',
        accessor: randomName(),
        config: { ttl: 1, list: ['ä', null] },
        local: false,
        sealWrap: true,
        touched: false,
        createdAt: Number.MAX_SAFE_INTEGER,
      }),
    )
    expect(await database.read((q) => table.get(q, row.id))).toEqual(row)
    expect(row).toMatchObject({ rev: 1, epoch: 0, namespace: '', mount: '', options: null, sealWrap: true })
  })

  test('ids grow with time, so that rows are inserted side by side', async () => {
    const { database } = bench
    const table = database.table(policies)
    const ids: string[] = []
    for (let n = 0; n < 5; n++) {
      ids.push((await database.transaction((tx) => table.insert(tx, policy(randomName())))).id)
      await delay(2)
    }
    expect(ids).toEqual(ids.toSorted())
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('names differ by case and by trailing spaces', async () => {
    const { database } = bench
    const table = database.table(policies)
    const name = randomName()
    await database.transaction((tx) => table.insertMany(tx, [policy(`${name}x`), policy(`${name}X`)]))
    expect((await database.read((q) => table.find(q, { name: `${name}X` })))?.name).toBe(`${name}X`)
    expect(await database.read((q) => table.find(q, { name: `${name}x ` }))).toBeUndefined()
  })

  test('a page is short only at the end: rows that seem to match are replaced by later ones', async () => {
    const { database, sql } = bench
    const mount = randomName()
    const names = Array.from({ length: 12 }, (_, i) => `n${String(i).padStart(2, '0')}${mount}`)
    const sealed = database.table(policies)
    await database.transaction((tx) =>
      sealed.insertMany(
        tx,
        names.map((name) => ({ ...policy(name), mount })),
      ),
    )
    const seeming = [0, 1, 2, 3, 5, 7, 11]
    for (const at of seeming) await sql('UPDATE policies SET mount = ? WHERE name = ?', [`${mount} `, names[at]])
    const rows = database.unverified(traces)
    const left = names.filter((_, at) => !seeming.includes(at))
    for (const by of ['name', ['name', 'id']] as const) {
      const page = async (limit: number, more: object = {}) =>
        (await database.read((q) => rows.list(q, { mount }, { by, limit, ...more }))).map(({ name }) => name)
      for (const limit of [1, 2, 3, 4, 5]) expect(await page(limit), `${by} ${limit}`).toEqual(left.slice(0, limit))
      expect(await page(6)).toEqual(left)
      expect(await page(0)).toEqual([])
      expect(await page(2, { descending: true })).toEqual(left.toReversed().slice(0, 2))
    }
  })

  test('a listing continues after its cursor, both ways', async () => {
    const { database } = bench
    const table = database.table(policies)
    const mount = randomName()
    const names = Array.from({ length: 70 }, (_, i) => `p${String(i).padStart(3, '0')}${mount}`)
    await database.transaction((tx) =>
      table.insertMany(
        tx,
        names.map((name) => ({ ...policy(name), mount })),
      ),
    )
    const seen: string[] = []
    for (let after: string | undefined; ; after = seen.at(-1)) {
      const page = await database.read((q) =>
        table.list(q, { mount }, { by: 'name', limit: 32, ...(after === undefined ? {} : { after }) }),
      )
      seen.push(...page.map(({ name }) => name))
      if (page.length < 32) break
    }
    expect(seen).toEqual(names)
    const back = await database.read((q) =>
      table.list(q, { mount }, { by: 'name', after: names[2] ?? '', limit: 9, descending: true }),
    )
    expect(back.map(({ name }) => name)).toEqual([names[1], names[0]])
    expect(await database.read((q) => table.count(q, { mount }))).toBe(70)
  })

  test('a taken unique key is reported after the transaction had a second look', async () => {
    const { database } = bench
    const table = database.table(policies)
    const name = randomName()
    let runs = 0
    const insert = () =>
      database.transaction((tx) => {
        runs++
        return table.insert(tx, policy(name))
      })
    await insert()
    await expect(insert()).rejects.toBeInstanceOf(DuplicateRow)
    expect(runs).toBe(3)
  })

  test('an update counts up rev and leaves other columns', async () => {
    const { database } = bench
    const table = database.table(policies)
    const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName())))
    const updated = await database.transaction(async (tx) => {
      const row = await table.get(tx, id)
      if (!row) throw new Error('gone')
      return table.update(tx, row, { text: 'new' })
    })
    expect(updated).toMatchObject({ id, rev: 2, text: 'new', updatedAt: 2 })
    expect(await database.read((q) => table.get(q, id))).toEqual(updated)
  })

  test('a row of another transaction or cache cannot be changed', async () => {
    const { database } = bench
    const table = database.table(policies)
    const row = await database.transaction((tx) => table.insert(tx, policy(randomName())))
    await expect(database.transaction((tx) => table.update(tx, row, { text: 'x' }))).rejects.toThrow('that read it')
  })

  test('a reader that outlives its work is refused', async () => {
    const { database } = bench
    const leaked = await database.transaction(async (tx) => tx)
    expect(() => leaked.touch('policies', 'x')).toThrow('not awaited')
    await expect(database.table(policies).count(leaked, { name: 'x' })).rejects.toThrow('not awaited')
  })

  test('a plain table is changed and counted up in place', async () => {
    const { database } = bench
    const table = database.table(counters)
    const material = crypto.randomUUID()
    await database.transaction((tx) => table.insert(tx, { material, used: 5 }))
    expect(await database.transaction((tx) => table.add(tx, { material }, { used: 2 ** 40 }))).toBe(1)
    expect(await database.read((q) => table.find(q, { material }))).toEqual({ material, used: 2 ** 40 + 5 })
    expect(await database.transaction((tx) => table.change(tx, { material, used: 4 }, { used: 0 }))).toBe(0)
    expect(await database.transaction((tx) => table.removeWhere(tx, { material }))).toBe(1)
  })

  test('sealed tables are closed before a MAC is given, except to unverified reads', async () => {
    await using database = await (await import('../../src/store/database.ts')).Database.open({
      url: bench.url,
      poolSize: 1,
      log: quiet,
      clock: (await import('../../src/clock.ts')).systemClock,
    })
    const name = randomName()
    await bench.database.transaction((tx) => bench.database.table(policies).insert(tx, policy(name)))
    await expect(database.read((q) => database.table(policies).find(q, { name }))).rejects.toThrow('no MAC')
    expect((await database.read((q) => database.unverified(policies).find(q, { name })))?.name).toBe(name)
  })

  test('a row that was remembered as sound is verified again by another MAC, and after its bytes were changed', async () => {
    await using database = await open(bench.url)
    const heads = database.table(headsTable)
    const row = { set: randomName(), count: 0, digest: Buffer.alloc(32, 5), seq: 0 }
    const { id } = await database.transaction((tx) => heads.insert(tx, row))
    const read = () => database.read((q) => heads.get(q, id))
    expect(await read()).toBe(await read())
    ;(await read())?.digest.fill(0)
    expect(await read()).toMatchObject(row)
    database.useMac(testMac(testMac().keyId, Buffer.alloc(32, 9)))
    await expect(read()).rejects.toBeInstanceOf(DamagedRow)
    database.useMac({ ...testMac(), format: 2 })
    await expect(read()).rejects.toBeInstanceOf(DamagedRow)
  })

  test('rows sealed with a key that is not known are refused, and read again when it is', async () => {
    await using other = await open(bench.url)
    const name = randomName()
    const next = testMac('00000000-0000-4000-8000-000000000002', Buffer.alloc(32, 9))
    other.useMac(next)
    await other.transaction((tx) => other.table(policies).insert(tx, policy(name)))
    const read = () => bench.database.read((q) => bench.database.table(policies).find(q, { name }))
    await expect(read()).rejects.toBeInstanceOf(DamagedRow)
    const old = testMac()
    bench.database.useMac({
      ...next,
      knows: (id) => next.knows(id) || old.knows(id),
      verify: (id, message, mac) => (next.knows(id) ? next : old).verify(id, message, mac),
    })
    expect((await read())?.name).toBe(name)
    bench.database.useMac(old)
  })
})
