import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Bench, counters, createBench, policies, policy, randomName } from '../support.ts'

/** Statements and sessions that the server's operator kills, wherever in a text they are. */

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
    const { database } = bench
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
