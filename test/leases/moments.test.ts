import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TokenCaller } from '../../src/auth/caller.ts'
import { spentUses, type TokenRow } from '../../src/auth/token.ts'
import { describeLease, prepareLease } from '../../src/leases/lease.ts'
import { revokeAll, revokeLease } from '../../src/leases/revoke.ts'
import { createLog } from '../../src/log.ts'
import { createLeaseWorld, type LeaseWorld } from './world.ts'

/** Leases to the millisecond: the clock moves only when told. */

let world: LeaseWorld
let token: TokenRow
let now = Date.now()
beforeAll(async () => {
  world = await createLeaseWorld(1)
  world.clock.wall = () => now
  token = (await world.node.token(null, { ttlSeconds: 1_000_000 })).row
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(async () => {
  await world.sql('DELETE FROM leases')
  world.ledger.taken.splice(0)
  world.ledger.broken = undefined
})

const life = { ttlSeconds: 10, maxTtlSeconds: 20, renewable: true }
const asked = { ...life, payload: { what: 'it' } }
const prepare = (path: string, more: Partial<TokenRow> = {}) => {
  const caller = new TokenCaller({ ...token, ...more }, 'not looked at', String)
  return prepareLease({ mount: world.mount, path, caller }, asked, now)
}

test('a new lease counts from now, and is due when it expires', () => {
  const row = prepare('issue/a')
  expect(row).toEqual({
    ...{ id: expect.stringMatching(/^[0-9a-f-]{36}$/), mount: world.mount.uuid, token: token.id, ...asked },
    leaseId: expect.stringMatching(/^shop\/issue\/a\/[0-9A-Za-z]{24}$/),
    ...{ issuedAt: now, expiresAt: now + 10_000, dueAt: now + 10_000, lastRenewalAt: null, attempts: 0 },
  })
  const seconds = [0, 1, 9999, 10_000, 10_001].map((passed) => describeLease(row, now + passed).durationSeconds)
  expect(seconds).toEqual([10, 10, 1, 0, 0])
})

test('the id of a lease has 700 characters at most', () => {
  const fits = 700 - 'shop/'.length - 1 - 24
  expect(prepare('p'.repeat(fits)).leaseId).toHaveLength(700)
  expect(() => prepare('p'.repeat(fits + 1))).toThrow('too long for a lease, whose id may have 700 characters')
})

test('a token that ends with this request gets no lease, one with a use left does', () => {
  expect(() => prepare('a', { numUses: spentUses })).toThrow('token had one use left')
  for (const numUses of [0, 1]) expect(prepare('a', { numUses }).token).toBe(token.id)
})

test('a lease is renewed until the moment it expires, and the job takes it from that moment on', async () => {
  const { leases, issue, expire } = world.node
  const [one, other] = [await issue(token, 'one', life), await issue(token, 'other', life)]
  now += 9999
  await expire()
  expect(world.ledger.taken).toEqual([])
  expect((await leases.renew(one.leaseId, 5)).lease.durationSeconds).toBe(5)
  now += 1
  await expect(leases.renew(other.leaseId, 5)).rejects.toThrow('lease expired')
  await expire()
  expect(world.ledger.taken).toEqual(['other'])
  now += 4998
  await expire()
  expect(world.ledger.taken).toEqual(['other'])
  now += 1
  await expire()
  expect(world.ledger.taken).toEqual(['other', 'one'])
})

test('each pause after a failed revocation is twice as long as the last, from 30 s to an hour, and counts from it', async () => {
  const { id } = await world.node.issue(token, 'it', life)
  const began = now
  const pauses: number[] = []
  world.ledger.broken = () => true
  for (let attempt = 1; attempt <= 9; attempt++) {
    await world.node.expire()
    // The first attempt is asked for, the others are the job's.
    if (attempt === 1) await expect(revokeLease(deps(), id)).rejects.toThrow('out of order')
    const [row] = await world.sql('SELECT attempts, due_at, expires_at FROM leases WHERE id = ?', [id])
    expect([row?.attempts, Number(row?.expires_at)]).toEqual([attempt, began])
    pauses.push(Number(row?.due_at) - now)
    now = Number(row?.due_at)
  }
  expect(pauses).toEqual([30, 60, 120, 240, 480, 960, 1920, 3600, 3600].map((seconds) => seconds * 1000))
})

test('an engine is asked to revoke eight leases at a time', async () => {
  const { database, leases } = world.node
  const rows = Array.from({ length: 20 }, () => prepare('a'))
  await database.transaction((tx) => leases.insert(tx, rows))
  let [busy, most] = [0, 0]
  async function revokeInEngine(): Promise<void> {
    most = Math.max(most, ++busy)
    await new Promise((resolve) => setImmediate(resolve))
    busy--
  }
  const failures = await revokeAll(
    { ...deps(), revokeInEngine },
    rows.map(({ id }) => id),
  )
  expect([failures, most, await world.sql('SELECT id FROM leases')]).toEqual([0, 8, []])
})

/** Of the functions that revoke: the engine fails as the ledger does. */
function deps() {
  const { database } = world.node
  const revokeInEngine = (_: string, payload: Readonly<Record<string, unknown>>) =>
    world.ledger.revokeLease(world.mount, payload)
  return { database, clock: world.clock, log: createLog('silent'), revokeInEngine }
}
