import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { CoherentCache } from '../../src/store/coherence/cache.ts'
import type { Database } from '../../src/store/database.ts'
import { parameterised } from '../../src/store/pool/literal.ts'
import { isUnrecorded, recordOutcome } from '../../src/store/pool/outcomes.ts'
import { Pool } from '../../src/store/pool/pool.ts'
import { parseTargets } from '../../src/store/pool/target.ts'
import type { Reader, Transaction } from '../../src/store/reader.ts'
import { runDirectory } from '../support/directory.ts'
import { clustered, onMySql } from '../support/engine.ts'
import { type SecondServer, startSecondServer } from '../support/secondserver.ts'
import { createMigratedOn } from '../support/template/migrated.ts'
import { Line } from './line.ts'
import { type Bench, createBench, policies, policy, randomName } from './support.ts'

// A second server whose replication has stopped: it answers from the state that `replicate` gave it.
const directory = mkdtempSync(join(runDirectory(), 'copy-'))
let server: SecondServer
/** The first one, unless files run alone: a server that takes no writes would harm every file that runs beside this one. */
let primary: SecondServer | undefined
beforeAll(async () => {
  server = await startSecondServer(directory, 'copy')
  primary = onMySql ? undefined : await startSecondServer(mkdtempSync(join(runDirectory(), 'primary-')), 'primary')
}, 60_000)
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await primary?.[Symbol.asyncDispose]()
})

let bench: Bench
let id: string
beforeEach(async () => {
  bench = await createBench({}, primary && createMigratedOn(primary.url))
  id = (
    await bench.database.transaction((tx) => bench.database.table(policies).insert(tx, policy(randomName(), 'old')))
  ).id
})
afterEach(async () => {
  for (const url of [bench.url, server.url]) await set(url, 'read_only = OFF')
  await bench[Symbol.asyncDispose]()
})

async function set(url: string, assignment: string): Promise<void> {
  const connection = await createConnection(url)
  await connection.query(`SET GLOBAL ${assignment}`).finally(() => connection.end())
}

/** Gives the second server what the first holds now. */
function replicate(): void {
  const [source] = parseTargets(bench.url)
  const dump = execFileSync('mariadb-dump', ['--no-defaults', '-uroot', `-S${source?.socketPath}`, `${source?.schema}`])
  execFileSync('mariadb', ['--no-defaults', '-uroot', `-S${server.socket}`, 'copy'], { input: dump })
}

const write = (database: Database, text: string): Promise<void> =>
  database.transaction(async (tx) => {
    const row = await database.table(policies).get(tx, id)
    if (row) await database.table(policies).update(tx, row, { text })
    tx.touch('policies', id)
  })

/** The answers of every way to read, or the status of the refusal. */
async function answers(
  database: Database,
  caches: readonly CoherentCache<{ text: string }>[] = [],
): Promise<unknown[]> {
  const table = database.table(policies)
  const textOf = (row: { text: string } | undefined) => row?.text
  const ways = [
    ...caches.map((cache) => async () => textOf(await cache.get(id))),
    () => database.read(async (q) => textOf(await table.get(q, id))),
    () => database.snapshot(async (q) => textOf(await table.get(q, id))),
    () => database.transaction(async (tx) => textOf(await table.get(tx, id))),
  ]
  return Promise.all(ways.map((way) => way().catch((error) => error.status)))
}

async function worker(url: string) {
  const database = await bench.another({ url })
  const joined = database.joined({
    tables: { policy: policies },
    key: (wanted) => ({ id: wanted }),
    value: ({ policy }) => policy,
  })
  const loads = [(q: Reader, wanted: string) => database.table(policies).get(q, wanted), { joined }]
  const caches = loads.map((load) => database.cache({ table: 'policies', limit: 10, load }))
  await database.start()
  for (const cache of caches) expect((await cache.get(id))?.text).toBe('old')
  return { database, caches }
}

function poolOf(url: string): Pool {
  const timeouts = { connectMilliseconds: 1000, statementMilliseconds: 8000 }
  return new Pool({ targets: parseTargets(url), limit: 1, queueLimit: 1, tls: undefined, timeouts, clock: systemClock })
}

// Clusters have tests of their own, galera.test.ts and engines/members.test.ts: their nodes are not copies.
describe.skipIf(clustered)('a database node that takes no writes never gives a stale answer', () => {
  test('a read-only copy in the URL, when the first node is cut off', async () => {
    replicate()
    await set(server.url, 'read_only = ON')
    await using line = await Line.open(bench.url)
    const { database, caches } = await worker(`${line.url},${server.url}`)
    // A database that never caches is refused only by the copy.
    const plain = await bench.another({ url: `${line.url},${server.url}` })
    line.silent = true
    await write(bench.database, 'new')
    expect(await Promise.all([answers(database, caches), answers(plain)])).toEqual([
      [503, 503, 503, 503, 503],
      [503, 503, 503],
    ])
    line.silent = false
    const again = () => answers(database, caches)
    while ((await again()).includes(503)) await delay(50)
    expect(await again()).toEqual(['new', 'new', 'new', 'new', 'new'])
  }, 120_000)

  test('a demoted primary, when another has been promoted', async () => {
    const nodes = `${bench.url},${server.url}`
    const { database, caches } = await worker(nodes)
    const plain = await bench.another({ url: nodes })
    await set(bench.url, 'read_only = ON')
    replicate()
    await write(await bench.another({ url: server.url }), 'new')
    expect(await answers(plain)).toEqual(['new', 'new', 'new'])
    for (let seen = await answers(database, caches); ; seen = await answers(database, caches)) {
      expect(seen).not.toContain('old')
      if (!seen.includes(503)) break
      await delay(50)
    }
  }, 120_000)

  test('a demoted primary makes no change of one round trip, though the account might', async () => {
    await using pool = poolOf(bench.url)
    const change = `UPDATE policies SET text = CONCAT(text, '+') WHERE id = '${id}'`
    const commit = () =>
      pool.use((connection) =>
        connection.commit([change, parameterised(recordOutcome(randomBytes(16), connection.writing))], {
          opened: false,
        }),
      )
    await commit()
    await set(bench.url, 'read_only = ON')
    await expect(commit()).rejects.toSatisfy(isUnrecorded)
    expect(await bench.sql('SELECT text FROM policies WHERE id = ?', [id])).toEqual([{ text: 'old+' }])
  })

  test('a demoted primary makes no change of a cached value, whether it was read, assumed or neither', async () => {
    const { database, caches } = await worker(bench.url)
    const [cache] = caches
    const row = cache?.peek(id)
    if (cache === undefined || row === undefined) throw new Error('the row is not cached')
    const table = database.table(policies)
    const text = 'changed'
    const name = randomName()
    const reading = (tx: Transaction) =>
      table.lock(tx, { id }).then((locked) => locked && table.update(tx, locked, { text }))
    const blind = async (tx: Transaction) => {
      cache.assume(tx, id)
      table.assume(tx, row)
      return table.update(tx, row, { text })
    }
    const insert = (tx: Transaction) => {
      tx.touch('policies', id)
      return table.insert(tx, policy(name))
    }
    await set(bench.url, 'read_only = ON')
    const changes = [
      database.assuming({ name: id, blind, reading }),
      database.transaction(insert, { deadlineMilliseconds: 500 }),
      bench.database.transaction(insert, { deadlineMilliseconds: 500 }),
      write(bench.database, text),
    ]
    for (const one of await Promise.allSettled(changes)) expect(one).toMatchObject({ reason: { status: 503 } })
    const stored = await bench.sql('SELECT text, rev FROM policies WHERE id = ? OR name = ?', [id, name])
    expect(stored).toEqual([{ text: 'old', rev: 1 }])
  }, 60_000)

  test('a primary that was demoted before its COMMIT: the look that follows it does not count', async () => {
    await using pool = poolOf(bench.url)
    const commit = (demote: () => Promise<void>) =>
      pool.use(async (connection) => {
        await connection.open('change', [])
        await demote()
        const change = `UPDATE policies SET text = 'new' WHERE id = '${id}'`
        return connection.commit([change], { opened: true, next: '1 FROM `schema`' })
      })
    expect(await commit(async () => undefined)).toMatchObject({ sure: true, rows: [[1]] })
    expect(await commit(() => set(bench.url, 'read_only = ON'))).toMatchObject({ sure: true, rows: undefined })
  })
})
