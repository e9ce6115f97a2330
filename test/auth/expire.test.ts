import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tokenTable } from '../../src/auth/token.ts'
import { unavailable } from '../../src/errors.ts'
import { createWorld, removed, runJob, service, tokensWith, type World, whileJobWaits } from './world.ts'

/** Tokens are removed from the table, and children outlive their parents. */

let world: World
beforeAll(async () => {
  world = await createWorld(2)
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

const create = (...args: Parameters<typeof service>) => world.node.tokens.create(service(...args))
const expire = () => runJob(world.node.database, world.node.tokens.expiry)
const tidy = () => runJob(world.node.database, world.node.tokens.tidying)
const there = async (...ids: string[]) => (await world.sql('SELECT id FROM tokens WHERE id IN (?)', [ids])).length
const works = async (credential: string) => {
  const found = await Promise.all(world.nodes.map(({ tokens }) => tokens.lookup(credential)))
  return found.every((row) => row !== undefined)
}

test('the job removes tokens that have ended with all below them, and no other', async () => {
  // What earlier tests have revoked.
  await removed(world)
  world.clock.ahead += 60_000
  await expire()
  const short = await create(null, { ttlSeconds: 60 })
  const child = await create(short.row)
  const grandchild = await create(child.row, { ttlSeconds: 10 })
  const orphan = await create(null)
  const renewed = await create(null, { ttlSeconds: 60 })
  world.clock.ahead += 30_000
  await world.node.tokens.renew(renewed.row.id, 3600)
  world.clock.ahead += 31_000
  world.node.revoked.splice(0)
  await expire()
  expect(await there(short.row.id, child.row.id, grandchild.row.id)).toBe(0)
  expect(new Set(world.node.revoked)).toEqual(new Set([short.row.id, child.row.id, grandchild.row.id]))
  expect(await works(orphan.credential)).toBe(true)
  expect(await works(renewed.credential)).toBe(true)
  expect(await works(world.rootToken)).toBe(true)
})

test('a token that is renewed while the job is on its way to it stays', async () => {
  const [renewed, ended] = [await create(null, { ttlSeconds: 10 }), await create(null, { ttlSeconds: 10 })]
  world.clock.ahead += 11_000
  await whileJobWaits(world, world.node.tokens.expiry, async () => {
    // On a node whose clock is behind, the token has not expired yet.
    world.clock.ahead -= 5000
    await world.nodes[1]?.tokens.renew(renewed.row.id, 600)
    world.clock.ahead += 5000
  })
  expect(await there(ended.row.id)).toBe(0)
  expect(await works(renewed.credential)).toBe(true)
})

test('many that end in the same moment go in one run, page by page', async () => {
  const made = await Promise.all(Array.from({ length: 250 }, () => create(null, { ttlSeconds: 5 })))
  const ids = made.map(({ row }) => row.id)
  world.clock.ahead += 6000
  await expire()
  expect(await there(...ids)).toBe(0)
})

test('all that end in the same millisecond go in one run', async () => {
  const made = await Promise.all(Array.from({ length: 150 }, () => create(null, { ttlSeconds: 5 })))
  const { database } = world.node
  const table = database.table(tokenTable)
  const expiresAt = world.clock.wall() + 5000
  await database.transaction(async (tx) => {
    for (const { row } of made) {
      const own = await table.get(tx, row.id)
      if (own) await table.update(tx, own, { expiresAt })
    }
  })
  world.clock.ahead += 6000
  await expire()
  expect(await there(...made.map(({ row }) => row.id))).toBe(0)
})

test('a locked token holds up no other', async () => {
  const made = await Promise.all(Array.from({ length: 20 }, () => create(null, { ttlSeconds: 5 })))
  const [locked = '', ...others] = made.map(({ row }) => row.id)
  world.clock.ahead += 6000
  await using other = await createConnection(world.url)
  await other.query('START TRANSACTION')
  await other.query('SELECT id FROM tokens WHERE id = ? FOR UPDATE', [locked])
  const running = expire()
  while ((await there(...others)) > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await there(locked)).toBe(1)
  await other.query('ROLLBACK')
  await running.catch((error: unknown) => expect(String(error)).toContain('could not be removed'))
  await expire()
  expect(await there(locked)).toBe(0)
}, 60_000)

test('the job finishes a revocation that a crash cut short', async () => {
  const dying = tokensWith(world, { revokeByToken: async () => Promise.reject(new Error('crash')) })
  const parent = await create(null)
  const child = await create(parent.row)
  await expect(dying.revoke(parent.row.id)).rejects.toThrow('crash')
  expect(await there(parent.row.id, child.row.id)).toBe(2)
  // Another worker may accept them a moment longer, and whoever revokes them again must find the row, and wait.
  for (const job of [expire, tidy]) await job()
  expect(await there(parent.row.id, child.row.id)).toBe(2)
  world.clock.ahead += 32_000
  await expire()
  expect(await there(parent.row.id, child.row.id)).toBe(0)
})

test('a revocation whose look for children fails says that the token is revoked, and the job ends the rest', async () => {
  const failing = tokensWith(world, { holders: async () => Promise.reject(unavailable('no connection')) })
  const { row, credential } = await create(null)
  const said = expect.stringMatching(/^the token is revoked; /)
  await expect(failing.revoke(row.id)).rejects.toMatchObject({ status: 503, message: said })
  expect((await Promise.all(world.nodes.map(({ tokens }) => tokens.lookup(credential)))).every((one) => !one)).toBe(
    true,
  )
  world.clock.ahead += 32_000
  await expire()
  expect(await there(row.id)).toBe(0)
})

test('a job whose lease went to another changes nothing', async () => {
  const { row } = await create(null, { ttlSeconds: 1 })
  world.clock.ahead += 2000
  const { database, tokens } = world.node
  const lease = await database.jobLease(tokens.expiry.name, 60)
  await lease?.release()
  const other = await world.nodes[1]?.database.jobLease(tokens.expiry.name, 60)
  await expect(tokens.expiry.run(new AbortController().signal, lease?.fence ?? 0n)).rejects.toThrow('taken over')
  expect(await there(row.id)).toBe(1)
  await other?.release()
  await expire()
  expect(await there(row.id)).toBe(0)
})

test('rows edited in the database do not stop the job, and are neither used nor removed', async () => {
  const odd = [`policies = 'x'`, 'num_uses = 1e18', `parent = id`, 'rev = 9007199254740993', 'expires_at = 1']
  const edited = []
  for (const change of odd) {
    const { row } = await create(null, { ttlSeconds: 5 })
    await world.sql(`UPDATE tokens SET ${change} WHERE id = ?`, [row.id])
    edited.push(row.id)
  }
  const huge = await create(null, { ttlSeconds: 5 })
  await world.sql('UPDATE tokens SET expires_at = 9223372036854775807 WHERE id = ?', [huge.row.id])
  const { row } = await create(null, { ttlSeconds: 5 })
  world.clock.ahead += 6000
  await expire()
  expect(await there(row.id)).toBe(0)
  expect(await there(...edited, huge.row.id)).toBe(6)
  await world.sql('DELETE FROM tokens WHERE id IN (?)', [[...edited, huge.row.id]])
})

test('a damaged child does not keep its parent from being revoked, nor its brothers', async () => {
  const parent = await create(null)
  const [child, brother] = [await create(parent.row), await create(parent.row)]
  await world.sql(`UPDATE tokens SET policies = '["root"' WHERE id = ?`, [child.row.id])
  await world.node.tokens.revoke(parent.row.id)
  expect(await there(parent.row.id, child.row.id, brother.row.id)).toBe(0)
})

test('parents edited to go round in a circle do not keep a revocation from ending', async () => {
  const top = await create(null)
  const middle = await create(top.row)
  const leaf = await create(middle.row)
  await world.sql('UPDATE tokens SET parent = ? WHERE id = ?', [leaf.row.id, top.row.id])
  await expect(world.node.tokens.revoke(middle.row.id)).resolves.toBeUndefined()
  expect(await there(middle.row.id, leaf.row.id)).toBe(0)
})

test('children made while their parent is revoked are refused, or gone: no row is left of them', async () => {
  for (let round = 0; round < 5; round++) {
    const parent = await create(null)
    const births = world.nodes.flatMap(({ tokens }) =>
      Array.from({ length: 8 }, () => tokens.create(service(parent.row)).catch(() => undefined)),
    )
    await world.node.tokens.revoke(parent.row.id)
    const made = await Promise.all(births)
    await removed(world)
    for (const child of made) if (child) expect(await there(child.row.id)).toBe(0)
    expect(await world.sql('SELECT id FROM tokens WHERE parent = ?', [parent.row.id])).toEqual([])
  }
})

test('revoke-orphan ends one token and lets its children live on, not refused for a moment', async () => {
  const parent = await create(null)
  const children = await Promise.all(Array.from({ length: 5 }, () => create(parent.row)))
  const grandchild = await create(children[0]?.row ?? null)
  let over = false
  const users = [...children, grandchild].map(async ({ credential }) => {
    while (!over) {
      expect(await works(credential)).toBe(true)
      await new Promise(setImmediate)
    }
  })
  await world.node.tokens.revokeOrphan(parent.row.id)
  over = true
  await Promise.all(users)
  expect(await works(parent.credential)).toBe(false)
  for (const { credential } of children) {
    expect(await world.nodes[1]?.tokens.lookup(credential)).toMatchObject({ orphan: true, parent: null })
  }
  await world.node.tokens.revokeOrphan(parent.row.id)
})

test('children made during revoke-orphan live on when they were given out', async () => {
  for (let round = 0; round < 5; round++) {
    const parent = await create(null)
    const births = world.nodes.flatMap(({ tokens }) =>
      Array.from({ length: 8 }, () => tokens.create(service(parent.row)).catch(() => undefined)),
    )
    await world.node.tokens.revokeOrphan(parent.row.id)
    const born = (await Promise.all(births)).filter((child) => child !== undefined)
    for (const { credential } of born) expect(await works(credential)).toBe(true)
    expect(await world.sql('SELECT id FROM tokens WHERE parent = ?', [parent.row.id])).toEqual([])
  }
})

test('tidy removes tokens without their parent and those of an earlier epoch, and no other', async () => {
  const parent = await create(null)
  const child = await create(parent.row)
  const kept = await create(null)
  const keptChild = await create(kept.row)
  await world.sql('DELETE FROM tokens WHERE id = ?', [parent.row.id])
  await tidy()
  expect(await there(child.row.id)).toBe(0)
  expect(await works(keptChild.credential)).toBe(true)
  expect(await works(world.rootToken)).toBe(true)

  const { database } = world.node
  const later = tokensWith(world, {}, 2)
  await runJob(database, later.tidying)
  expect(await there(kept.row.id, keptChild.row.id)).toBe(0)
})
