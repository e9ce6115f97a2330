import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextTurn } from '../../src/after.ts'
import { Policies } from '../../src/auth/policies.ts'
import { spentUses, type TokenRow } from '../../src/auth/token.ts'
import { DamagedRow, UnknownOutcome } from '../../src/store/faults.ts'
import { Line } from '../store/line.ts'
import { createWorld, removed, runJob, service, type World } from './world.ts'

/** Tokens that are good for a number of requests, and the first request of any token. */

let world: World
let root: TokenRow
beforeAll(async () => {
  world = await createWorld(3)
  const found = await world.node.tokens.lookup(world.rootToken)
  if (found === undefined) throw new Error('no root token')
  root = found
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

const limited = (numUses: number, more = {}) => world.node.tokens.create(service(root, { numUses, ...more }))
const count = async (id: string) => (await world.sql('SELECT num_uses FROM tokens WHERE id = ?', [id]))[0]?.num_uses

test('exactly as many requests sign in as the token has uses, whichever workers they come to', async () => {
  for (const uses of [1, 7, 49]) {
    const { credential, row } = await limited(uses)
    const asked = Array.from({ length: 50 }, (_, n) => world.nodes[n % 3]?.authenticator.authenticate(credential))
    const identities = (await Promise.all(asked)).filter((identity) => identity !== undefined)
    expect(identities).toHaveLength(uses)
    const last = identities.filter(({ end }) => end !== undefined)
    expect(last).toHaveLength(1)
    expect(await count(row.id)).toBe(spentUses)
    await last[0]?.end?.()
    await removed(world)
    expect(await count(row.id)).toBeUndefined()
    for (const node of world.nodes) expect(await node.authenticator.authenticate(credential)).toBeUndefined()
  }
})

test('each use is stored before its request runs, and every worker sees the number left', async () => {
  const { credential, row } = await limited(3)
  for (const [index, node] of world.nodes.entries()) {
    expect(await node.authenticator.authenticate(credential)).toBeDefined()
    expect(await count(row.id)).toBe([2, 1, spentUses][index])
    if (index < 2)
      for (const { tokens } of world.nodes) expect((await tokens.lookup(credential))?.numUses).toBe(2 - index)
  }
  for (const { tokens } of world.nodes) {
    expect(await tokens.lookup(credential)).toBeUndefined()
    expect(await tokens.get(row.id)).toBeUndefined()
    expect(await tokens.withAccessor(row.accessor)).toBeUndefined()
  }
})

test('a look-up, or an optional authentication, takes no use', async () => {
  const { credential, row } = await limited(1)
  for (const { tokens, authenticator } of world.nodes) {
    expect(await tokens.lookup(credential)).toMatchObject({ numUses: 1 })
    expect(await tokens.withAccessor(row.accessor)).toMatchObject({ numUses: 1 })
    expect(await authenticator.recognise(credential)).toMatchObject({ caller: { tokenId: row.id } })
  }
  expect(await count(row.id)).toBe(1)
})

test('a use counts even if the request then fails', async () => {
  const { credential, row } = await limited(2, { policies: ['nosuch'] })
  const { database, tokens } = world.node
  const policies = new Policies({ database, clock: world.clock })
  const [kept] = await world.sql(`SELECT text FROM policies WHERE name = 'default'`)
  await world.sql(`UPDATE policies SET text = 'x' WHERE name = 'default'`)
  await expect(async () => policies.acl((await tokens.use(credential))?.policies ?? [])).rejects.toThrow(DamagedRow)
  await world.sql(`UPDATE policies SET text = ? WHERE name = 'default'`, [kept?.text])
  expect(await count(row.id)).toBe(1)
  await expect(Promise.resolve(tokens.use(credential))).resolves.toMatchObject({ numUses: spentUses })
})

test.each(['before', 'after'] as const)(
  'a line cut %s the commit of a use neither loses nor repeats it',
  async (cut) => {
    await using line = await Line.open(world.url)
    const { tokens } = await world.join(line.url)
    const { credential, row } = await world.node.tokens.create(service(null, { numUses: 2 }))
    line.cut = cut
    expect(await tokens.use(credential)).toMatchObject({ numUses: 1 })
    expect(line.cut).toBe('none')
    expect(await count(row.id)).toBe(1)
  },
)

test('a use whose outcome stays unknown is refused, and counts', async () => {
  await using line = await Line.open(world.url)
  const { tokens } = await world.join(line.url)
  const { credential, row } = await world.node.tokens.create(service(null, { numUses: 2 }))
  line.cut = 'late'
  const used = Promise.resolve(tokens.use(credential))
  while (line.cut === 'late') await new Promise(setImmediate)
  // The commit arrives, but its outcome cannot be asked for.
  line.silent = true
  line.deliver()
  await expect(used).rejects.toBeInstanceOf(UnknownOutcome)
  expect(await count(row.id)).toBe(1)
  expect(await world.node.tokens.use(credential)).toMatchObject({ numUses: spentUses })
  expect(await world.node.tokens.use(credential)).toBeUndefined()
}, 60_000)

test('a token whose worker died on its last use is removed by the expiry job', async () => {
  const { credential, row } = await limited(1)
  expect(await world.node.authenticator.authenticate(credential)).toBeDefined()
  world.node.revoked.splice(0)
  await runJob(world.node.database, world.node.tokens.expiry)
  expect(await count(row.id)).toBeUndefined()
  expect(world.node.revoked).toContain(row.id)
})

test('renewing and using the same token at once loses neither', async () => {
  const { credential, row } = await limited(20)
  const { tokens } = world.node
  await Promise.all([
    ...Array.from({ length: 10 }, (_, n) => world.nodes[n % 3]?.tokens.use(credential)),
    ...Array.from({ length: 5 }, () => tokens.renew(row.id, 7200)),
  ])
  expect(await count(row.id)).toBe(10)
  expect((await tokens.get(row.id))?.expiresAt).toBeGreaterThan(world.clock.wall() + 7_000_000)
})

test('a revoked token has no use left on any worker', async () => {
  const { credential, row } = await limited(1000)
  let answered = false
  const users = world.nodes.map(async ({ tokens }) => {
    for (let after = 0; after < 5; ) {
      // Requests come over sockets: a loop over answers from memory alone would let nothing else run.
      await nextTurn()
      const late = answered
      const used = await tokens.use(credential)
      if (late) {
        after++
        expect(used).toBeUndefined()
      }
    }
  })
  await world.node.tokens.revoke(row.id)
  answered = true
  await Promise.all(users)
})

test.each([
  ['more uses', 'num_uses = 1000'],
  ['no limit', 'num_uses = 0'],
  ['a use back', 'num_uses = num_uses + 1'],
  ['more time', 'expires_at = expires_at + 3600000'],
  ['no end', 'expires_at = NULL'],
])('the owner of the database cannot give a token %s', async (_, change) => {
  const { credential, row } = await limited(3)
  await world.node.tokens.use(credential)
  await world.sql(`UPDATE tokens SET ${change} WHERE id = ?`, [row.id])
  for (const { tokens } of world.nodes) await expect(async () => tokens.use(credential)).rejects.toThrow(DamagedRow)
})

test('nor revive a spent one by its number alone', async () => {
  const { credential, row } = await limited(1)
  await world.node.tokens.use(credential)
  await world.sql('UPDATE tokens SET num_uses = 1, expires_at = expires_at + 3600000 WHERE id = ?', [row.id])
  for (const { tokens } of world.nodes) await expect(async () => tokens.use(credential)).rejects.toThrow(DamagedRow)
})

test('open: an older row put back whole gives its uses back, until the token ends', async () => {
  const { credential, row } = await limited(2)
  const [old] = await world.sql('SELECT num_uses, rev, mac FROM tokens WHERE id = ?', [row.id])
  await world.node.tokens.use(credential)
  await world.sql('UPDATE tokens SET num_uses = ?, rev = ?, mac = ? WHERE id = ?', [
    old?.num_uses,
    old?.rev,
    old?.mac,
    row.id,
  ])
  expect(await world.node.tokens.use(credential)).toMatchObject({ numUses: 1 })
})

test('the first use after the creation, on the worker that made the token, asks neither database nor HSM', async () => {
  const { tokens } = world.node
  const { credential, row } = await tokens.create(service(null))
  const calls = world.keys.calls
  expect(tokens.use(credential)).toMatchObject({ id: row.id })
  expect(world.keys.calls - calls).toBe(0)
})

test('there, too, it is refused if another worker has revoked the token or its parent meanwhile', async () => {
  const { tokens } = world.node
  const [one, parent] = [await tokens.create(service(null)), await tokens.create(service(null))]
  const child = await tokens.create(service(parent.row))
  for (const { row } of [one, parent]) await world.nodes[1]?.tokens.revoke(row.id)
  for (const { credential } of [one, parent, child]) expect(await tokens.use(credential)).toBeUndefined()
})

test('a chosen text that was revoked with its parent is that of the next token, wherever the first one was known', async () => {
  const custom = 's.chosen-and-chosen-again'
  const { tokens } = world.node
  const parent = await tokens.create(service(root))
  const first = await tokens.create(service(parent.row, { custom }))
  for (const node of world.nodes) expect(await node.tokens.lookup(custom)).toMatchObject({ id: first.row.id })
  await tokens.revoke(parent.row.id)
  const next = await tokens.create(service(root, { custom }))
  for (const node of world.nodes) {
    expect(await node.tokens.lookup(custom)).toMatchObject({ id: next.row.id })
    expect(await node.tokens.idOf(custom)).toBe(next.row.id)
  }
  await world.nodes[1]?.tokens.revoke(next.row.id)
  for (const node of world.nodes) expect(await node.tokens.lookup(custom)).toBeUndefined()
})

describe('a use on the worker that made the token, but does not hold its row,', () => {
  let making: World['node']['tokens']
  beforeAll(async () => {
    // It caches nothing.
    making = (await world.join(world.url)).tokens
  })
  const [maker, other] = [() => making, () => world.nodes[1]?.tokens]
  const free = (more = {}) => maker().create(service(null, more))

  test('is one statement, and no call of the HSM', async () => {
    await using line = await Line.open(world.url)
    const { tokens } = await world.join(line.url)
    const make = () => tokens.create(service(null))
    // The statement is prepared once for each connection.
    const made = [await make(), await make(), await make()]
    await tokens.use(made[0]?.credential ?? '')
    await tokens.use(made[1]?.credential ?? '')
    const [commands, calls] = [line.commands, world.keys.calls]
    expect(await tokens.use(made[2]?.credential ?? '')).toMatchObject({ id: made[2]?.row.id })
    expect([line.commands - commands, world.keys.calls - calls]).toEqual([1, 0])
  })

  test('is refused if another worker has revoked the token or its parent meanwhile', async () => {
    const [one, parent] = [await free(), await free()]
    const child = await maker().create(service(parent.row))
    const orphan = await free()
    for (const { row } of [one, parent]) await other()?.revoke(row.id)
    for (const { credential } of [one, parent, child]) expect(await maker().use(credential)).toBeUndefined()
    expect(await maker().use(orphan.credential)).toMatchObject({ id: orphan.row.id })
  })

  test('is refused for a row that has ended, is gone, or was edited', async () => {
    const [ended, gone, edited] = [await free({ ttlSeconds: 60 }), await free(), await free()]
    world.clock.ahead += 61_000
    try {
      expect(await maker().use(ended.credential)).toBeUndefined()
    } finally {
      world.clock.ahead -= 61_000
    }
    await world.sql('DELETE FROM tokens WHERE id = ?', [gone.row.id])
    expect(await maker().use(gone.credential)).toBeUndefined()
    await world.sql(`UPDATE tokens SET policies = '["root"]' WHERE id = ?`, [edited.row.id])
    await expect(async () => maker().use(edited.credential)).rejects.toThrow(DamagedRow)
    await world.sql('DELETE FROM tokens WHERE id = ?', [edited.row.id])
  })

  test('does not let a row stand for the credential of another', async () => {
    const [one, two] = [await free({ policies: ['one'] }), await free({ policies: ['two'] })]
    await world.sql('DELETE FROM tokens WHERE id = ?', [one.row.id])
    await world.sql('UPDATE tokens SET id = ? WHERE id = ?', [one.row.id, two.row.id])
    for (const { credential } of [one, two]) {
      await expect(async () => maker().use(credential)).rejects.toThrow(DamagedRow)
    }
    await world.sql('DELETE FROM tokens WHERE id = ?', [one.row.id])
  })

  test('is that of the new token if a chosen text was revoked and given away again', async () => {
    const [custom, elsewhere] = ['s.first-use-of-a-chosen-text', other()]
    const first = await free({ custom, policies: ['first'] })
    await elsewhere?.revoke(first.row.id)
    const second = await elsewhere?.create(service(null, { custom, policies: ['second'], numUses: 2 }))
    expect(await maker().use(custom)).toMatchObject({ id: second?.row.id, policies: ['second'], numUses: 1 })
    await elsewhere?.revoke(second?.row.id ?? '')
    expect(await maker().use(custom)).toBeUndefined()
  })

  test('counts as one of the uses of a limited token', async () => {
    const { credential } = await free({ numUses: 3 })
    const taken = await Promise.all(Array.from({ length: 10 }, () => maker().use(credential)))
    expect(taken.filter((row) => row !== undefined)).toHaveLength(3)
  })

  test('of many tokens at once answers each for itself, and for none that is revoked', async () => {
    const made = await Promise.all(Array.from({ length: 60 }, (_, n) => free({ policies: [`p${n}`] })))
    const revoked = made.filter((_, n) => n % 4 === 1)
    await Promise.all(revoked.map(({ row }) => other()?.revoke(row.id)))
    for (const tokens of [maker(), world.nodes[2]?.tokens]) {
      const rows = await Promise.all(made.map(async ({ credential }) => tokens?.use(credential)))
      expect(rows.map((row) => row?.policies)).toEqual(made.map((_, n) => (n % 4 === 1 ? undefined : [`p${n}`])))
    }
  })

  test('is accepted by none that began after a revocation was answered', async () => {
    for (let round = 0; round < 10; round++) {
      const { credential, row } = await free()
      const during = Promise.all(Array.from({ length: 8 }, async () => maker().use(credential)))
      await other()?.revoke(row.id)
      const afterwards = await Promise.all(Array.from({ length: 8 }, async () => maker().use(credential)))
      expect(afterwards).toEqual(Array.from({ length: 8 }, () => undefined))
      await during
    }
  })
})
