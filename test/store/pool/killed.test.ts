import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Line } from '../line.ts'
import { type Bench, counters, createBench, open, policies, policy, randomName } from '../support.ts'

/** Sessions that end, by a KILL or with their line, at any point of a multi-statement text. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const writers = 4
const enoughKills = 20

test.each(['QUERY', 'CONNECTION'])(
  'KILL %s at any moment neither doubles nor loses a change',
  async (what) => {
    // Only one node: in a cluster the pool would move on to a node without KILLs.
    await using database = await open(bench.url)
    const [locked, compared] = [database.table(policies), database.table(policies)]
    const ids = await Promise.all(
      ['0', '0'].map(
        async (text) => (await database.transaction((tx) => locked.insert(tx, policy(randomName(), text)))).id,
      ),
    )
    const [lockedId = '', comparedId = ''] = ids
    const mount = randomName()
    const next = (text: string) => ({ text: String(Number(text) + 1) })
    const change = () =>
      database.transaction(
        async (tx) => {
          const one = await locked.lock(tx, { id: lockedId })
          const other = await compared.get(tx, comparedId)
          if (!one || !other) throw new Error('lost')
          await locked.update(tx, one, next(one.text))
          await database.table(counters).insert(tx, { material: crypto.randomUUID(), used: 1 })
          await compared.update(tx, other, next(other.text))
          await locked.insert(tx, { ...policy(randomName()), mount })
          tx.touch('policies', lockedId)
        },
        { deadlineMilliseconds: 60_000 },
      )
    let running = true
    let kills = 0
    const killing = (async () => {
      const killer = await createConnection(bench.url)
      const mine = `SELECT id FROM information_schema.processlist
      WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command <> 'Sleep'`
      while (running) {
        const [rows] = await killer.query<RowDataPacket[]>(mine)
        const id = rows[Math.floor(Math.random() * rows.length)]?.id
        if (id !== undefined)
          await killer.query(`KILL ${what} ${id}`).then(
            () => kills++,
            () => undefined,
          )
        await delay(Math.random() * 8)
      }
      await killer.end()
    })()
    let made = 0
    await Promise.all(
      Array.from({ length: writers }, async () => {
        for (; kills < enoughKills; made++) await change()
      }),
    )
    running = false
    await killing
    const texts = await Promise.all(ids.map((id) => database.read((q) => locked.get(q, id))))
    expect(texts.map((row) => row?.text)).toEqual([String(made), String(made)])
    expect(await database.read((q) => locked.count(q, { mount }))).toBe(made)
  },
  120_000,
)

const bytesBetween = 53

test.each(['up', 'down'] as const)(
  'a line that is cut at any byte (%s) neither doubles nor loses a change',
  async (way) => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url, { poolSize: 1 })
    const table = database.table(policies)
    const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
    let runs = 0
    const change = () =>
      database.transaction(async (tx) => {
        runs++
        const row = await table.lock(tx, { id })
        if (row === undefined) throw new Error('lost')
        await database.table(counters).insert(tx, { material: crypto.randomUUID(), used: 1 })
        await table.update(tx, row, { text: String(Number(row.text) + 1) })
      })
    let made = 0
    for (let bytes = 0; line.left[way] === Number.POSITIVE_INFINITY; bytes += bytesBetween) {
      line.left[way] = bytes
      await change()
      made++
      expect((await bench.database.read((q) => bench.database.table(policies).get(q, id)))?.text).toBe(String(made))
    }
    expect([made > 10, runs > made]).toEqual([true, true])
  },
  60_000,
)
