import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TokenCaller } from '../../src/auth/caller.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { createLeaseWorld, type LeaseWorld } from './world.ts'

/** Many leases that end together, and jobs that are interrupted. */

let world: LeaseWorld
let token: TokenRow
beforeAll(async () => {
  world = await createLeaseWorld()
  token = (await world.node.token(null, { ttlSeconds: 1_000_000 })).row
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(async () => {
  await world.sql('DELETE FROM leases')
  world.ledger.taken.splice(0)
  world.ledger.broken = undefined
})

/** Leases that end in the same millisecond. */
async function issue(count: number): Promise<string[]> {
  const { database, leases } = world.node
  const asked = { payload: { what: 'it' }, ttlSeconds: 10, maxTtlSeconds: 20, renewable: true }
  const caller = new TokenCaller(token, 'not looked at', String)
  const rows = Array.from({ length: count }, () => leases.prepare({ mount: world.mount, path: 'a', caller }, asked))
  const [{ expiresAt = 0 } = {}] = rows
  await database.transaction((tx) =>
    leases.insert(
      tx,
      rows.map((row) => ({ ...row, expiresAt, dueAt: expiresAt })),
    ),
  )
  return rows.map(({ id }) => id).sort()
}
const left = async () => (await world.sql('SELECT id FROM leases ORDER BY id')).map(({ id }) => String(id))
const transactions = async () => Number((await world.sql('SELECT COUNT(*) AS n FROM outcomes'))[0]?.n)

test('all that end in one moment end in one run of the job, 64 by each transaction', async () => {
  await issue(200)
  world.clock.ahead += 11_000
  const before = await transactions()
  await world.node.expire()
  expect(await left()).toEqual([])
  expect(world.ledger.taken).toHaveLength(200)
  // Two for each portion, and two to take and release the job's lease.
  expect((await transactions()) - before).toBeLessThanOrEqual(2 * Math.ceil(200 / 64) + 2)
})

test('edited leases, locked ones and ones whose revocation fails hold up no other', async () => {
  const ids = await issue(100)
  const [edited = '', locked = ''] = ids
  await world.sql('UPDATE leases SET renewable = 1 - renewable WHERE id = ?', [edited])
  let failures = 0
  world.ledger.broken = () => failures++ === 20
  world.clock.ahead += 11_000
  await using other = await createConnection(world.url)
  await other.query('START TRANSACTION')
  await other.query('SELECT id FROM leases WHERE id = ? FOR UPDATE', [locked])
  const running = world.node.expire()
  while ((await left()).length > 3) await new Promise((resolve) => setTimeout(resolve, 50))
  await other.query('ROLLBACK')
  await running
  const remaining = await left()
  expect(remaining).toContain(edited)
  // The lease whose revocation failed waits for its next turn, and so does the locked one unless it was free in time.
  expect([2, 3]).toContain(remaining.length)
}, 60_000)

test('as many edited ones as fit into a transaction hold up no lease after or beside them', async () => {
  const ids = await issue(100)
  const edited = ids.slice(0, 64)
  await world.sql(`UPDATE leases SET max_ttl_seconds = 1 WHERE id IN (?)`, [edited])
  await issue(10)
  world.clock.ahead += 11_000
  await world.node.expire()
  expect(await left()).toEqual(edited)
})

test('tidy continues where it was interrupted, for one whole round', async () => {
  const { leases, database } = world.node
  const ids = await issue(150)
  const interrupted = AbortSignal.abort()
  const run = async (signal: AbortSignal) => {
    const lease = await database.jobLease(leases.tidying.name, 60)
    await leases.tidying.run(signal, lease?.fence ?? 0n).finally(() => lease?.release())
  }
  await run(interrupted)
  expect(await database.jobPlace(leases.tidying.name)).toBe(ids[63])
  await world.sql('DELETE FROM tokens WHERE id = ?', [token.id])
  const another = world.nodes[1]
  if (another === undefined) throw new Error('one node')
  await another.tidy()
  expect(await left()).toEqual(ids.slice(0, 64))
  expect(await database.jobPlace(leases.tidying.name)).toBe('')
  await another.tidy()
  expect(await left()).toEqual([])
})
