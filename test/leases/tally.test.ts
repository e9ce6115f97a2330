import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLeaseWorld, type LeaseWorld } from './world.ts'

/** Leases are counted as they come and go: counting the rows would read every one of them. */

let world: LeaseWorld
beforeAll(async () => {
  world = await createLeaseWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

const stored = async () => Number((await world.world.sql('SELECT COUNT(*) AS n FROM leases'))[0]?.n)
const stripes = async () => (await world.world.sql('SELECT stripe FROM tallies WHERE n <> 0')).length

/** In this order: a row whose mount was edited stays counted under its former mount. */
describe('leases of a mount', { shuffle: false }, () => {
  test('the count is that of the rows, however many come and go at once and by whichever way', async () => {
    const { ledger, nodes, node, mount } = world
    const { row: holder } = await node.token()
    const made = await Promise.all(
      Array.from({ length: 60 }, (_, n) => nodes[n % nodes.length]?.issue(holder, `${n}`, { path: `of/${n % 3}` })),
    )
    expect(await node.leases.count()).toBe(60)
    expect(await stripes()).toBeGreaterThan(10)
    await Promise.all(made.slice(0, 9).map(async (one) => node.leases.revoke(one?.leaseId ?? '')))
    await Promise.all(made.slice(0, 9).map(async (one) => node.leases.revoke(one?.leaseId ?? '')))
    expect(await node.leases.count()).toBe(51)
    ledger.broken = () => true
    await node.leases.revokeForce('shop/of/1/')
    ledger.broken = undefined
    expect(await node.leases.count()).toBe(await stored())
    await node.leases.revokePrefix('shop/of/2/')
    expect(await node.leases.count()).toBe(await stored())
    expect(await node.database.tally(`leases-${mount.uuid}`)).toBe(await stored())
    const claim = { job: 'removal', fence: (await node.database.jobLease('removal', 60))?.fence ?? 0n }
    while (await node.leases.removeSome(mount, claim));
    expect([await node.leases.count(), await stored()]).toEqual([0, 0])
    expect(await node.database.tally(`leases-${mount.uuid}`)).toBe(0)
    await node.leases.forget(mount, claim)
    expect(await world.world.sql("SELECT * FROM tallies WHERE name LIKE 'leases-%'")).toEqual([])
    expect(await node.leases.count()).toBe(0)
  })

  test('a lease whose mount somebody has edited is removed all the same', async () => {
    const { node } = world
    const { row } = await node.token()
    const { id, leaseId } = await node.issue(row, 'edited', { path: 'edited' })
    await world.world.sql("UPDATE leases SET mount = 'x''; --' WHERE id = ?", [id])
    await node.leases.revokeForce('shop/edited/')
    expect(await world.world.sql('SELECT id FROM leases WHERE lease_id = ?', [leaseId])).toEqual([])
  })
})

test('a count that one transaction holds is not changed by another that holds it', async () => {
  const [one, other] = world.nodes
  const read: number[] = []
  const add = (node: typeof one) =>
    node?.database.transaction(async (tx) => {
      await tx.holdTally('held')
      read.push(await tx.tallied('held'))
      tx.tally('held', 1)
    })
  await Promise.all(Array.from({ length: 20 }, (_, n) => add(n % 2 ? one : other)))
  expect(read.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
  expect(await one?.database.tally('held')).toBe(20)
})

test('a lease that was not committed is not counted', async () => {
  const { database, leases, tokens } = world.node
  const before = await leases.count()
  const { row } = await world.node.token()
  const doomed = database.transaction(async (tx) => {
    tx.tally('leases', 1)
    throw new Error('no')
  })
  await expect(doomed).rejects.toThrow('no')
  expect(await leases.count()).toBe(before)
  await tokens.revoke(row.id)
})

test('only names of ours are counted under', async () => {
  const { database } = world.node
  for (const [name, delta] of [
    ["x'; DROP TABLE leases", 1],
    ['leases', 0.5],
  ] as const) {
    await expect(database.transaction(async (tx) => tx.tally(name, delta))).rejects.toThrow('no tally')
  }
})
