import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { isLost } from '../../src/store/faults.ts'
import { Connection } from '../../src/store/pool/connection.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import { clustered } from '../support/engine.ts'
import { Line } from './line.ts'
import { type Bench, counters, createBench, open, policies, policy, randomName } from './support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench[Symbol.asyncDispose]())

const used = async (material: string): Promise<number | undefined> =>
  (await bench.database.read((q) => bench.database.table(counters).find(q, { material })))?.used

async function counter(): Promise<string> {
  const material = crypto.randomUUID()
  await bench.database.transaction((tx) => bench.database.table(counters).insert(tx, { material, used: 0 }))
  return material
}

describe('a transaction', () => {
  test('is repeated whole after a deadlock', async () => {
    const { database } = bench
    const table = database.table(counters)
    const [a, b] = [await counter(), await counter()]
    let runs = 0
    const both = { first: Promise.withResolvers<void>(), second: Promise.withResolvers<void>() }
    const work = (one: string, two: string, mine: () => void, other: Promise<void>) =>
      database.transaction(async (tx) => {
        runs++
        await table.add(tx, { material: one }, { used: 1 })
        mine()
        await other
        await table.add(tx, { material: two }, { used: 1 })
      })
    await Promise.all([
      work(a, b, both.first.resolve, both.second.promise),
      work(b, a, both.second.resolve, both.first.promise),
    ])
    expect([await used(a), await used(b)]).toEqual([2, 2])
    expect(runs).toBeGreaterThan(2)
  })

  test('is repeated when a row it read was changed before it wrote', async () => {
    const { database } = bench
    const table = database.table(policies)
    const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
    const count = () =>
      database.transaction(async (tx) => {
        const row = await table.get(tx, id)
        if (row) await table.update(tx, row, { text: String(Number(row.text) + 1) })
      })
    await Promise.all(Array.from({ length: 20 }, count))
    expect(await database.read((q) => table.get(q, id))).toMatchObject({ text: '20', rev: 21 })
  })

  test('does its follow-up work once, after the commit, and not without one', async () => {
    const { database } = bench
    const table = database.table(counters)
    const material = await counter()
    const seen: (number | undefined)[] = []
    const change = (how: 'well' | 'badly') =>
      database.transaction(async (tx) => {
        await table.add(tx, { material }, { used: 1 })
        tx.onCommit(async () => void seen.push(await used(material)))
        tx.onCommit(async () => Promise.reject(new Error('of no concern to the caller')))
        if (how === 'badly') throw new Error('not committed')
      })
    await change('well')
    expect(seen).toEqual([1])
    await expect(change('badly')).rejects.toThrow('not committed')
    expect(seen).toEqual([1])
  })

  test('changes nothing when its work throws', async () => {
    const material = await counter()
    const failing = bench.database.transaction(async (tx) => {
      await bench.database.table(counters).add(tx, { material }, { used: 1 })
      throw new ApiError(400, 'no')
    })
    await expect(failing).rejects.toMatchObject({ status: 400 })
    expect(await used(material)).toBe(0)
  })

  test('ends with 503 when it conflicts until its deadline', async () => {
    const { database } = bench
    const table = database.table(policies)
    const { id } = await database.transaction((tx) => table.insert(tx, policy(randomName())))
    const doomed = database.transaction(
      async (tx) => {
        const row = await table.get(tx, id)
        await bench.sql('UPDATE policies SET rev = rev + 1, mac = mac WHERE id = ?', [id])
        await bench.sql('DELETE FROM policies WHERE id = ?', [id])
        if (row) await table.update(tx, row, { text: 'x' })
        else throw new ApiError(404, 'gone')
      },
      { deadlineMilliseconds: 0 },
    )
    await expect(doomed).rejects.toMatchObject({ status: 503 })
  })
})

describe('a COMMIT without an answer', () => {
  test.each(['before', 'after'] as const)('is found out when the line was cut %s it', async (cut) => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    const material = await counter()
    let runs = 0
    line.cut = cut
    await database.transaction((tx) => {
      runs++
      return database.table(counters).add(tx, { material }, { used: 1 })
    })
    expect(await used(material)).toBe(1)
    expect(runs).toBe(cut === 'before' ? 2 : 1)
  })

  test('is found out when it reaches the server only after the question', async () => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    const table = database.table(policies)
    const { id } = await bench.database.transaction((tx) => table.insert(tx, policy(randomName(), '0')))
    let runs = 0
    line.cut = 'late'
    const writing = database.transaction(async (tx) => {
      runs++
      const row = await table.get(tx, id)
      if (row) await table.update(tx, row, { text: `${row.text}+` })
    })
    await delay(500)
    line.deliver()
    await writing
    expect((await bench.database.read((q) => table.get(q, id)))?.text).toBe('0+')
    // In a cluster, statements go one by one: then the COMMIT alone was late, and is found to have taken place.
    expect(runs).toBe(clustered ? 1 : 2)
  })

  test('changes nothing when it reaches the server, with all that was written, only after the question', async () => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    const material = await counter()
    let runs = 0
    line.cut = 'late'
    const writing = database.transaction(async (tx) => {
      runs++
      await database.table(counters).add(tx, { material }, { used: 1 })
      await database.table(policies).insert(tx, policy(`late-${material}`))
    })
    await delay(500)
    line.deliver()
    await writing
    expect(await used(material)).toBe(1)
    expect(runs).toBe(clustered ? 1 : 2)
    const rows = await bench.sql('SELECT id FROM policies WHERE name = ?', [`late-${material}`])
    expect(rows).toHaveLength(1)
  })

  test('never doubles and never loses a write, whenever the line is cut', async () => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    const material = await counter()
    let acknowledged = 0
    const cutting = (async () => {
      for (let n = 0; n < 40; n++) {
        line.cut = n % 2 === 0 ? 'before' : 'after'
        await delay(10)
      }
    })()
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let n = 0; n < 25; n++) {
          await database.transaction((tx) => database.table(counters).add(tx, { material }, { used: 1 }))
          acknowledged++
        }
      }),
    )
    await cutting
    expect(await used(material)).toBe(acknowledged)
  })

  test('is not asked about when nothing was written', async () => {
    await using line = await Line.open(bench.url)
    await using database = await open(line.url)
    line.cut = 'before'
    const before = await bench.sql('SELECT COUNT(*) AS n FROM outcomes')
    expect(await database.transaction((tx) => database.table(counters).count(tx, { material: 'x' }))).toBe(0)
    expect(await bench.sql('SELECT COUNT(*) AS n FROM outcomes')).toEqual(before)
  })
})

describe('a connection', () => {
  test('has its locks and silence limited by the server', async () => {
    const [target] = parseTargets(bench.url)
    if (!target) throw new Error('no target')
    const connection = await Connection.open(target, undefined, {
      connectMilliseconds: 1000,
      statementMilliseconds: 1000,
    })
    const [row] = await connection.rows('SELECT @@wait_timeout, @@innodb_lock_wait_timeout, @@time_zone, @@autocommit')
    expect(row).toEqual([10, 5, '+00:00', 1])
    await connection.end()
  })

  test('is given up when a statement does not answer', async () => {
    const [target] = parseTargets(bench.url)
    if (!target) throw new Error('no target')
    const connection = await Connection.open(target, undefined, {
      connectMilliseconds: 1000,
      statementMilliseconds: 100,
    })
    const error = await connection.rows('SELECT SLEEP(3)').catch((thrown: unknown) => thrown)
    expect(isLost(error)).toBe(true)
    expect(connection.broken).toBe(true)
  })

  test('that the server closed is replaced unseen', async () => {
    await using database = await open(bench.url, { poolSize: 1 })
    const count = () => database.read((q) => database.table(counters).count(q, { material: 'x' }))
    await count()
    const [schema] = await bench.sql('SELECT DATABASE() AS name')
    const mine = await bench.sql('SELECT id FROM information_schema.processlist WHERE db = ? AND command = "Sleep"', [
      schema?.name,
    ])
    for (const { id } of mine) await bench.sql(`KILL ${id}`).catch(() => undefined)
    expect(await count()).toBe(0)
  })

  test('is waited for when all are lent', async () => {
    await using database = await open(bench.url, { poolSize: 2 })
    const results = await Promise.all(
      Array.from({ length: 20 }, () => database.snapshot((q) => database.table(counters).count(q, { material: 'x' }))),
    )
    expect(results).toEqual(Array(20).fill(0))
  })

  test('goes to the next node when the first cannot be reached', async () => {
    const dead = bench.url.replace(/\?.*$|$/, '?socketPath=/nowhere/x.sock')
    await using database = await open(`${dead},${bench.url}`)
    expect(await database.read((q) => database.table(counters).count(q, { material: 'x' }))).toBe(0)
  })

  test('refused for its password or schema fails at once, and its error contains no secret', async () => {
    const wrong = bench.url.replace(/\/t_\w+/, '/nowhere')
    await expect(open(wrong)).rejects.toThrow(/Unknown database/)
    await expect(open('mysql:secret')).rejects.not.toThrow(/secret/)
  })
})
