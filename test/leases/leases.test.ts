import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TokenCaller } from '../../src/auth/caller.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { withLeases } from '../../src/leases/engines.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { openHold } from '../attack/hold.ts'
import { runJob, whileJobWaits } from '../auth/world.ts'
import { createLeaseWorld, type LeaseWorld } from './world.ts'

let world: LeaseWorld
beforeAll(async () => {
  world = await createLeaseWorld()
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await world.sql('DELETE FROM leases')
  world.ledger.taken.splice(0)
  world.ledger.broken = undefined
})

const there = async (id: string) => (await world.sql('SELECT id FROM leases WHERE id = ?', [id])).length === 1

test('a lease is known to every worker under its path and random characters', async () => {
  const { row } = await world.node.token()
  const { leaseId, lease } = await world.node.issue(row, 'a')
  expect(leaseId).toMatch(/^shop\/issue\/a\/[0-9A-Za-z]{24}$/)
  expect(lease).toEqual({ id: leaseId, renewable: true, durationSeconds: 600 })
  for (const { leases } of world.nodes) expect(await leases.find(leaseId)).toMatchObject({ token: row.id, attempts: 0 })
})

/** A lease that is stored and not confirmed yet. */
async function stored(token: TokenRow, what: string) {
  const { database, leases } = world.node
  const caller = new TokenCaller(token, 'not looked at', String)
  const asked = { payload: { what }, ttlSeconds: 600, maxTtlSeconds: 1200, renewable: true }
  const row = leases.prepare({ mount: world.mount, path: 'issue/a', caller }, asked)
  await database.transaction((tx) => leases.insert(tx, [row]))
  return row
}

test('a lease that is stored is handed out though its token cannot be looked up again', async () => {
  // A token with a number of uses is never cached.
  const { row: token } = await world.node.token(null, { numUses: 5 })
  const row = await stored(token, 'kept')
  await using other = await createConnection(world.url)
  await other.query('LOCK TABLES tokens WRITE')
  const confirmed = world.node.leases.confirm(row)
  await expect(confirmed.finally(() => other.query('UNLOCK TABLES'))).resolves.toMatchObject({ id: row.leaseId })
  expect(await there(row.id)).toBe(true)
}, 60_000)

test('a lease whose token is gone is refused as such though it cannot be taken back at once', async () => {
  const { row: token } = await world.node.token()
  const row = await stored(token, 'late')
  // As a revocation that listed the token's leases just before this one was stored.
  await world.sql('DELETE FROM tokens WHERE id = ?', [token.id])
  await world.sql(`CREATE TRIGGER refusing BEFORE UPDATE ON leases FOR EACH ROW
    SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213`)
  const refused = world.nodes[1]?.leases.confirm(row).finally(() => world.sql('DROP TRIGGER refusing'))
  await expect(refused).rejects.toMatchObject({ status: 403 })
  // On a worker that does not have the token in its cache.
  await world.nodes[1]?.tidy()
  expect([await there(row.id), world.ledger.taken]).toEqual([false, ['late']])
}, 60_000)

test('a lease taken back is told to its engine once, and gone', async () => {
  const { row } = await world.node.token()
  const { leaseId, id } = await world.node.issue(row, 'back')
  await world.nodes[1]?.leases.revoke(leaseId)
  await world.nodes[0]?.leases.revoke(leaseId)
  expect(world.ledger.taken).toEqual(['back'])
  expect(await there(id)).toBe(false)
})

test('leases end by time, and the job takes back those and no other', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const short = await world.node.issue(row, 'short', { ttlSeconds: 10 })
  const long = await world.node.issue(row, 'long')
  world.clock.ahead += 11_000
  await world.node.expire()
  expect(world.ledger.taken).toEqual(['short'])
  expect([await there(short.id), await there(long.id)]).toEqual([false, true])
})

test('a lease that is renewed while the job is on its way to it stays', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const renewed = await world.node.issue(row, 'renewed', { ttlSeconds: 10 })
  await world.node.issue(row, 'ended', { ttlSeconds: 10 })
  world.clock.ahead += 11_000
  await whileJobWaits(world, world.node.leases.expiry, async () => {
    // On a node whose clock is behind, the lease has not expired yet.
    world.clock.ahead -= 5000
    await world.nodes[1]?.leases.renew(renewed.leaseId, 600)
    world.clock.ahead += 5000
  })
  expect(world.ledger.taken).toEqual(['ended'])
  expect(await world.node.leases.find(renewed.leaseId)).toMatchObject({ attempts: 0 })
})

test('many leases that end together go in one run, page by page', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  await Promise.all(Array.from({ length: 230 }, (_, n) => world.node.issue(row, `n${n}`, { ttlSeconds: 10 })))
  world.clock.ahead += 11_000
  await world.node.expire()
  expect(new Set(world.ledger.taken).size).toBe(230)
})

test('a renewal gives more time up to the longest life, but not to an expired lease or one that is not renewable', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const { leases } = world.node
  const one = await world.node.issue(row, 'r', { ttlSeconds: 100, maxTtlSeconds: 250 })
  world.clock.ahead += 60_000
  expect((await leases.renew(one.leaseId, 0)).lease).toMatchObject({ durationSeconds: 100 })
  world.clock.ahead += 90_000
  // Without an increment, the last one counts again.
  await leases.renew(one.leaseId, 20)
  expect((await leases.renew(one.leaseId, 0)).lease).toMatchObject({ durationSeconds: 20 })
  const { lease, warnings } = await leases.renew(one.leaseId, 1000)
  expect(lease.durationSeconds).toBeLessThanOrEqual(100)
  expect(warnings).toEqual([expect.stringContaining('capped')])
  world.clock.ahead += 101_000
  await expect(leases.renew(one.leaseId, 0)).rejects.toThrow('lease expired')
  await expect(leases.renew('shop/issue/a/nosuch', 0)).rejects.toThrow('lease not found')
  const fixed = await world.node.issue(row, 'f', { renewable: false })
  await expect(leases.renew(fixed.leaseId, 0)).rejects.toThrow('lease is not renewable')
  await world.node.expire()
  expect(world.ledger.taken).toEqual(['r'])
})

test('a revoked token takes its leases and those of its children with it, before that is answered', async () => {
  const parent = await world.node.token()
  const child = await world.node.token(parent.row)
  const other = await world.node.token()
  await world.node.issue(parent.row, 'p')
  await Promise.all(Array.from({ length: 120 }, (_, n) => world.node.issue(child.row, `c${n}`)))
  const kept = await world.node.issue(other.row, 'other')
  await world.nodes[1]?.tokens.revoke(parent.row.id)
  expect(new Set(world.ledger.taken).size).toBe(121)
  expect(world.ledger.taken).not.toContain('other')
  expect(await world.sql('SELECT id FROM leases WHERE token IN (?)', [[parent.row.id, child.row.id]])).toEqual([])
  expect(await there(kept.id)).toBe(true)
})

test('the leases of a token that ended by time, or was used up, go with it', async () => {
  const timed = await world.node.token(null, { ttlSeconds: 10 })
  await world.node.issue(timed.row, 'timed')
  world.clock.ahead += 11_000
  await runJob(world.node.database, world.node.tokens.expiry)
  const counted = await world.node.token(null, { numUses: 2 })
  const first = await world.node.tokens.use(counted.credential)
  if (first === undefined) throw new Error('has two uses')
  await world.node.issue(first, 'counted')
  const last = await world.node.tokens.use(counted.credential)
  if (last === undefined) throw new Error('has one use left')
  await expect(world.node.issue(last, 'never')).rejects.toThrow('token had one use left')
  await world.node.tokens.revoke(last.id)
  expect(world.ledger.taken).toEqual(['timed', 'counted'])
})

test('a lease issued while its token is revoked is refused or revoked: none is left', async () => {
  for (let round = 0; round < 5; round++) {
    const { row } = await world.node.token()
    const given = world.nodes.flatMap(({ issue }, node) =>
      Array.from({ length: 8 }, (_, n) => issue(row, `${round}-${node}-${n}`).catch(() => undefined)),
    )
    await world.node.tokens.revoke(row.id)
    await Promise.all(given)
    expect(await world.sql('SELECT id FROM leases WHERE token = ?', [row.id])).toEqual([])
  }
})

test('what is stored while its token is being revoked goes with it: leases, children and theirs', async () => {
  await using hold = await openHold(world.url)
  const revoking = await world.join(hold.url)
  const { row } = await world.node.token()
  const { row: other } = await world.node.token()
  const locked = hold.hold('FOR UPDATE')
  // The first of a group has nothing of the kind.
  const revoked = Promise.all([other, row].map(({ id }) => revoking.tokens.revoke(id)))
  await locked
  const child = await world.node.token(row)
  await world.node.issue(child.row, 'of the child')
  await world.node.issue(row, 'its own')
  hold.release()
  await revoked
  await revoking.tokens.removeRevoked()
  expect(new Set(world.ledger.taken)).toEqual(new Set(['of the child', 'its own']))
  expect(await world.sql('SELECT id FROM tokens WHERE id IN (?)', [[row.id, other.id, child.row.id]])).toEqual([])
  for (const { tokens } of world.nodes) expect(await tokens.lookup(child.credential)).toBeUndefined()
})

test('while a revocation is under way a second one is true when it is answered, and the text is not free', async () => {
  await using hold = await openHold(world.url)
  const revoking = await world.join(hold.url)
  const custom = 'chosen-by-hand'
  const { row, credential } = await world.node.token(null, { custom })
  for (const { tokens } of world.nodes) expect(await tokens.lookup(credential)).toBeDefined()
  const committed = hold.hold('COMMIT')
  const first = revoking.tokens.revoke(row.id)
  await committed
  await expect(world.node.token(null, { custom })).rejects.toThrow('duplicate ID')
  await world.nodes[1]?.tokens.revoke(row.id)
  for (const { tokens } of world.nodes) expect(await tokens.lookup(credential)).toBeUndefined()
  hold.release()
  await first
  expect(await world.sql('SELECT id FROM tokens WHERE id = ?', [row.id])).toEqual([])
  // The others know the marked row.
  const again = await world.node.token(null, { custom })
  for (const { tokens } of world.nodes) {
    expect(await tokens.lookup(credential)).toMatchObject({ id: again.row.id })
    expect(await tokens.idOf(credential)).toBe(again.row.id)
  }
})

test('a revocation that fails in the engine is reported, has expired the lease, and is tried again later', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const bad = await world.node.issue(row, 'bad')
  const good = await world.node.issue(row, 'good')
  world.ledger.broken = () => true
  await expect(world.node.leases.revoke(bad.leaseId)).rejects.toThrow('out of order')
  await expect(world.node.leases.renew(bad.leaseId, 600)).rejects.toThrow('lease expired')
  world.ledger.broken = (payload) => JSON.stringify(payload).includes('bad')
  await expect(world.node.tokens.revoke(row.id)).rejects.toMatchObject({ status: 503 })
  expect(await world.node.tokens.get(row.id)).toBeUndefined()
  expect([await there(bad.id), await there(good.id)]).toEqual([true, false])
  await world.node.expire()
  expect(await there(bad.id)).toBe(true)
  world.ledger.broken = undefined
  world.clock.ahead += 7_200_000
  await world.node.expire()
  expect(world.ledger.taken).toEqual(expect.arrayContaining(['good', 'bad']))
  expect(await there(bad.id)).toBe(false)
})

test('an engine that keeps failing does not keep the job from the others', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  await Promise.all(Array.from({ length: 120 }, (_, n) => world.node.issue(row, `bad${n}`, { ttlSeconds: 10 })))
  await world.node.issue(row, 'good', { ttlSeconds: 11 })
  world.ledger.broken = (payload) => JSON.stringify(payload).includes('bad')
  world.clock.ahead += 12_000
  await world.node.expire()
  await world.node.expire()
  expect(world.ledger.taken).toEqual(['good'])
  await world.sql('DELETE FROM leases WHERE token = ?', [row.id])
})

test('a prefix is a folder: taken back now, ended now and taken back by the job, or forgotten', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const issueAt = (path: string) => world.node.issue(row, path, { path })
  const { leases } = world.node
  await Promise.all(['web/a', 'web/b', 'webmail', 'db/x'].map(issueAt))
  await leases.revokePrefix('shop/web/')
  expect(world.ledger.taken.toSorted()).toEqual(['web/a', 'web/b'])

  const lazy = await issueAt('web/c')
  await leases.expirePrefix('shop/web/')
  await expect(leases.renew(lazy.leaseId, 600)).rejects.toThrow('lease expired')
  await world.node.expire()
  expect(world.ledger.taken).toContain('web/c')

  const stuck = await issueAt('db/y')
  world.ledger.broken = () => true
  await expect(leases.revokePrefix('shop/db/')).rejects.toMatchObject({ status: 503 })
  await leases.revokeForce('shop/db/')
  expect(await there(stuck.id)).toBe(false)
  expect(await leases.list('shop/', '', 100)).toContain('webmail/')
})

test('a listing shows the entries directly below, however many are deeper', async () => {
  const { row } = await world.node.token()
  const paths = ['l/a', 'l/a-b', 'l/a/deep', 'l/b', ...Array.from({ length: 130 }, () => 'l/many')]
  await Promise.all(paths.map((path) => world.node.issue(row, path, { path })))
  const { leases } = world.node
  const folders = ['a-b/', 'a/', 'b/', 'many/']
  expect(await leases.list('shop/l/', '', 100)).toEqual(folders)
  expect(await leases.list('shop/l/', '', 2)).toEqual(folders.slice(0, 2))
  expect(await leases.list('shop/l/', 'a/', 2)).toEqual(folders.slice(2))
  expect(await leases.list('', '', 100)).toEqual(['shop/'])
  const many = await leases.list('shop/l/many/', '', Number.POSITIVE_INFINITY)
  expect(new Set(many).size).toBe(130)
  expect(await leases.list('shop/l/many/', many[99] ?? '', 1000)).toEqual(many.slice(100))
  const mixed = await leases.list('shop/l/a/', '', 100)
  expect(mixed.toSorted((a, b) => a.length - b.length)).toEqual(['deep/', expect.stringMatching(/^[0-9A-Za-z]{24}$/)])
  expect(await leases.list('shop/nothing/', '', 100)).toEqual([])
  await world.node.tokens.revoke(row.id)
})

test('a mount that goes takes its leases along, without asking the engine for each', async () => {
  const { row } = await world.node.token()
  await Promise.all(Array.from({ length: 250 }, (_, n) => world.node.issue(row, `m${n}`)))
  const gone: string[] = []
  const engine = { ...world.ledger, removeSome: async () => gone.push('data') === 0 }
  const { database } = world.node
  const left = async () => (await world.sql('SELECT id FROM leases WHERE mount = ?', [world.mount.uuid])).length
  const lease = await database.jobLease('removal', 60)
  const claim = { job: 'removal', fence: lease?.fence ?? 0n }
  const removeSome = async () => withLeases(engine, world.node.leases).removeSome?.(world.mount, claim)
  expect(await removeSome()).toBe(true)
  expect([await left(), gone]).toEqual([50, []])
  while (await removeSome());
  expect(await left()).toBe(0)
  expect(gone).toEqual(['data'])
  expect(world.ledger.taken).toEqual([])
})

test('a lease whose mount is gone leaves quietly', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const { id } = await world.node.issue(row, 'left', { ttlSeconds: 10 })
  const mounts = world.mounts.splice(0)
  world.clock.ahead += 11_000
  await world.node.expire()
  world.mounts.push(...mounts)
  expect(await there(id)).toBe(false)
  expect(world.ledger.taken).toEqual([])
})

test('leases of a removed mount are shown and renewed no more, beside those of the mount in its place', async () => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const old = await Promise.all(Array.from({ length: 120 }, () => world.node.issue(row, 'old', { path: 'anew/a' })))
  await world.node.issue(row, 'old', { path: 'before/a' })
  const mounts = world.mounts.splice(0, 1, { ...world.mount, uuid: '22222222-2222-4222-8222-222222222222' })
  world.removed.add(world.mount.uuid)
  const { leases } = world.node
  expect(await leases.list('shop/', '', 100)).toEqual([])
  const anew = await world.node.issue(row, 'new', { path: 'anew/a' })
  const [{ leaseId = '' } = {}] = old
  expect(await leases.list('shop/', '', 100)).toEqual(['anew/'])
  expect(await leases.list('shop/anew/a/', '', 100)).toEqual([anew.leaseId.slice('shop/anew/a/'.length)])
  expect(await leases.find(leaseId)).toBe(undefined)
  await expect(leases.renew(leaseId, 60)).rejects.toThrow('lease not found')
  expect((await leases.renew(anew.leaseId, 60)).lease.id).toBe(anew.leaseId)
  await leases.revoke(anew.leaseId)
  world.mounts.splice(0, 1, ...mounts)
  world.removed.clear()
})

test('tidy takes back the leases of tokens that are gone', async () => {
  const [dead, living] = [await world.node.token(), await world.node.token()]
  const lost = await world.node.issue(dead.row, 'lost')
  const kept = await world.node.issue(living.row, 'kept')
  await world.sql('DELETE FROM tokens WHERE id = ?', [dead.row.id])
  await world.nodes[1]?.tidy()
  expect(world.ledger.taken).toEqual(['lost'])
  expect([await there(lost.id), await there(kept.id)]).toEqual([false, true])
})

test('tidy leaves the leases of a token that was edited, and takes back those of others that are gone', async () => {
  const [edited, dead] = [await world.node.token(), await world.node.token()]
  const kept = await world.node.issue(edited.row, 'kept')
  const lost = await world.node.issue(dead.row, 'lost')
  await world.sql(`UPDATE tokens SET display_name = 'edited' WHERE id = ?`, [edited.row.id])
  await world.sql('DELETE FROM tokens WHERE id = ?', [dead.row.id])
  await expect(world.nodes[1]?.tokens.get(edited.row.id)).rejects.toThrow(DamagedRow)
  await world.nodes[1]?.tidy()
  expect(world.ledger.taken).toEqual(['lost'])
  expect([await there(lost.id), await there(kept.id)]).toEqual([false, true])
})

test.each([
  ['payload', `payload = '{"what":"somebody else’s"}'`],
  ['payload to what is no JSON', `payload = '{'`],
  ['token', 'token = UUID()'],
  ['end', 'expires_at = expires_at - 1'],
  ['maximum', 'max_ttl_seconds = 1000000'],
  ['renewability', 'renewable = 1 - renewable'],
  ['attempts', 'attempts = attempts + 1'],
  ['due time', 'due_at = 1'],
  ['mount', 'mount = UUID()'],
])('a lease whose %s was edited does nothing: it is not taken back, renewed or shown', async (_, change) => {
  const { row } = await world.node.token(null, { ttlSeconds: 100_000 })
  const { id, leaseId } = await world.node.issue(row, 'mine', { ttlSeconds: 10 })
  const other = await world.node.issue(row, 'beside', { ttlSeconds: 10 })
  await world.sql(`UPDATE leases SET ${change} WHERE id = ?`, [id])
  const { leases } = world.node
  await expect(leases.find(leaseId)).rejects.toThrow(DamagedRow)
  expect(await leases.list('shop/issue/a/', '', 100)).toContain(leaseId.replace('shop/issue/a/', ''))
  await expect(leases.renew(leaseId, 600)).rejects.toThrow(DamagedRow)
  await expect(leases.revoke(leaseId)).rejects.toThrow(DamagedRow)
  world.clock.ahead += 11_000
  await world.node.expire()
  expect(world.ledger.taken).toEqual(['beside'])
  expect([await there(id), await there(other.id)]).toEqual([true, false])
  await leases.revokeForce('shop/')
  expect(await there(id)).toBe(false)
})

test('a lease copied under another id, or two payloads swapped, are refused', async () => {
  const { row } = await world.node.token()
  const [one, two] = [await world.node.issue(row, 'one'), await world.node.issue(row, 'two')]
  const [a] = await world.sql('SELECT payload, mac FROM leases WHERE id = ?', [one.id])
  await world.sql('UPDATE leases SET payload = ?, mac = ? WHERE id = ?', [a?.payload, a?.mac, two.id])
  await expect(world.node.leases.revoke(two.leaseId)).rejects.toThrow(DamagedRow)
  expect(world.ledger.taken).toEqual([])
  await world.node.leases.revokeForce('shop/')
  expect(world.ledger.taken).toEqual(['one'])
})
