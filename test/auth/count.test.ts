import { afterAll, beforeAll, expect, test } from 'vitest'
import { prepareAccess } from '../../src/auth/initialise.ts'
import { RootGeneration } from '../../src/auth/recovery.ts'
import { createRootToken } from '../../src/auth/roottoken.ts'
import { createWorld, removed, runJob, service, type World } from './world.ts'

/** Tokens are counted as they come and go: counting the rows would read every one of them. */

let world: World
beforeAll(async () => {
  world = await createWorld(2)
}, 120_000)
afterAll(() => world?.[Symbol.asyncDispose]())

const stored = async () => Number((await world.sql('SELECT COUNT(*) AS n FROM tokens'))[0]?.n)
/** Both nodes' counts, which must equal the number of rows. */
async function counted(): Promise<number> {
  await removed(world)
  const [one, other] = await Promise.all(world.nodes.map(({ tokens }) => tokens.count()))
  expect([one, other]).toEqual([await stored(), await stored()])
  return one ?? Number.NaN
}

test('the count is that of the rows, however many tokens come and go at once', async () => {
  const { node, nodes } = world
  const before = await counted()
  const parent = await node.tokens.create(service(null))
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, n) => nodes[n % 2]?.tokens.create(service(n % 3 === 0 ? parent.row : null))),
  )
  expect(await counted()).toBe(before + 61)
  const custom = await node.tokens.create(service(null, { custom: 'of-my-own' }))
  await expect(node.tokens.create(service(null, { custom: 'of-my-own' }))).rejects.toThrow('duplicate')
  expect(await counted()).toBe(before + 62)
  await Promise.all([parent.row, custom.row].map(({ id }) => node.tokens.revoke(id)))
  await node.tokens.revoke(parent.row.id)
  expect(await counted()).toBe(before + 40)
  await nodes[1]?.tokens.revokeOrphan(made[1]?.row.id ?? '')
  expect(await counted()).toBe(before + 39)
})

test('what expires is counted no more once it is removed', async () => {
  const { node, clock } = world
  const before = await counted()
  for (let made = 0; made < 3; made++) await node.tokens.create(service(null, { ttlSeconds: 60 }))
  expect(await counted()).toBe(before + 3)
  clock.ahead += 120_000
  await runJob(node.database, node.tokens.expiry)
  expect(await counted()).toBeLessThanOrEqual(before)
})

test('root tokens count too, by whichever way they are made', async () => {
  const { node, clock } = world
  const { database } = node
  const keys = { audit: world.keys.audit, tokenMac: (credential: Buffer) => world.keys.tokenMac(credential) }
  const before = await counted()
  await createRootToken({ database, keys, clock }, 0)
  const generation = new RootGeneration({ database, keys, clock, cluster: 'c', epoch: 1 })
  const secret = await generation.enable()
  const { nonce } = await generation.begin()
  await generation.complete(secret, nonce, 60)
  expect(await counted()).toBe(before + 2)
})

test('an initialisation that is repeated counts its root token once', async () => {
  const { node, keys, clock } = world
  const { database } = node
  const before = await counted()
  for (let round = 0; round < 2; round++) {
    const access = await prepareAccess({ database, keys, clock })
    await database.transaction((tx) => access.write(tx))
  }
  expect(await counted()).toBeLessThanOrEqual(before)
})
