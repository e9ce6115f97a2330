import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../src/auth/acl/decide.ts'
import { prepareAccess } from '../../src/auth/initialise.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { Line } from '../store/line.ts'
import { createWorld, removed, service, tokensWith, type World } from './world.ts'

describe('tokens', () => {
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

  test('the root token may do everything and never ends', async () => {
    const identity = await world.node.authenticator.authenticate(world.rootToken)
    expect(identity?.caller).toMatchObject({ policies: ['root'], displayName: 'root', tokenId: root.id })
    expect(identity && decide(identity.acl, 'sudo', 'any/path').allowed).toBe(true)
    expect(root.expiresAt).toBeNull()
  })

  test('a token that is stored is handed out though the database goes away before its parent is looked up again', async () => {
    await using line = await Line.open(world.url)
    const { tokens } = await world.join(line.url)
    line.cut = 'last'
    const { credential, row } = await tokens.create(service(root))
    expect(line.cut).toBe('none')
    expect(await world.node.tokens.lookup(credential)).toMatchObject({ id: row.id })
  }, 60_000)

  test('many revocations at once, some of one token, each end theirs', async () => {
    const { tokens } = world.node
    const made = await Promise.all(Array.from({ length: 100 }, () => tokens.create(service(root))))
    const parents = made.slice(0, 10)
    const children = await Promise.all(parents.map(({ row }) => tokens.create(service(row))))
    const before = await tokens.count()
    const ids = [...made, ...parents].map(({ row }) => row.id)
    await Promise.all([...ids, 'absent'].map((id, index) => world.nodes[index % 2]?.tokens.revoke(id)))
    await removed(world)
    expect(await tokens.count()).toBe(before - made.length - children.length)
    for (const node of world.nodes)
      for (const { credential } of [...made, ...children]) expect(await node.tokens.lookup(credential)).toBeUndefined()
    expect(await world.sql('SELECT id FROM tokens WHERE id IN (?)', [ids])).toEqual([])
  })

  test('the revocation of a token whose row was edited fails, and harms none of the same moment', async () => {
    // On a worker that reads the row.
    const tokens = world.nodes[1]?.tokens ?? world.node.tokens
    const made = await Promise.all([1, 2, 3].map(() => world.node.tokens.create(service(root))))
    const [edited] = made
    await world.sql("UPDATE tokens SET display_name = 'x' WHERE id = ?", [edited?.row.id])
    const revoked = await Promise.allSettled(made.map(({ row }) => tokens.revoke(row.id)))
    expect(revoked.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect(revoked[0]).toMatchObject({ reason: expect.any(DamagedRow) })
    await removed(world)
    expect(await world.sql('SELECT id FROM tokens WHERE id IN (?)', [made.map(({ row }) => row.id)])).toHaveLength(1)
  })

  test('a known token is answered without a promise, a forged one without database or HSM', async () => {
    const { tokens, authenticator } = world.node
    const { credential } = await tokens.create(service(root))
    expect(await tokens.lookup(credential)).toMatchObject({ policies: ['app', 'default'] })
    await authenticator.authenticate(credential)
    expect(authenticator.authenticate(credential)).not.toBeInstanceOf(Promise)
    const calls = world.keys.calls
    for (let n = 0; n < 100_000; n++) {
      const guess = `${credential.slice(0, -8)}${String(n).padStart(8, '0')}`
      if (tokens.lookup(guess) !== undefined) throw new Error('a guess was looked up')
    }
    // Other forms: the database is asked once whether a custom token exists, and the answer is remembered.
    for (let n = 0; n < 1000; n++) expect(await tokens.lookup(`guess-${n}`)).toBeUndefined()
    expect(world.keys.calls).toBe(calls)
  })

  test('a revoked token is looked up once more, then refused without database or HSM', async () => {
    const { tokens } = world.node
    const [one, other] = [await tokens.create(service(root)), await tokens.create(service(root))]
    expect(await tokens.lookup(one.credential)).toBeDefined()
    for (const { row } of [one, other]) await tokens.revoke(row.id)
    for (const { credential } of [one, other]) {
      expect(await tokens.lookup(credential)).toBeUndefined()
      const { calls } = world.keys
      expect([tokens.lookup(credential), tokens.use(credential)]).toEqual([undefined, undefined])
      expect(world.keys.calls).toBe(calls)
    }
  })

  test('a token ends by time, and its descendants end with it', async () => {
    const { tokens } = world.node
    const parent = await tokens.create(service(root, { ttlSeconds: 60 }))
    const child = await tokens.create(service(parent.row))
    expect(await tokens.lookup(child.credential)).toBeDefined()
    world.clock.ahead += 61_000
    expect(await tokens.lookup(parent.credential)).toBeUndefined()
    expect(await tokens.lookup(child.credential)).toBeUndefined()
    await expect(tokens.create(service(parent.row))).rejects.toThrow('permission denied')
    await expect(tokens.renew(parent.row.id, 0)).rejects.toThrow('token not found')
  })

  test('a renewal counts on every worker at once', async () => {
    const { tokens } = world.node
    const { credential, row } = await tokens.create(service(root, { ttlSeconds: 60 }))
    for (const node of world.nodes) expect(await node.tokens.lookup(credential)).toBeDefined()
    world.clock.ahead += 50_000
    await tokens.renew(row.id, 100)
    world.clock.ahead += 50_000
    for (const node of world.nodes) expect(await node.tokens.lookup(credential)).toBeDefined()
    await expect(tokens.renew(root.id, 0)).rejects.toThrow('lease is not renewable')
  })

  test('a revoked token is refused by every worker at once, with all below it and no orphan', async () => {
    const { tokens, revoked } = world.node
    revoked.splice(0)
    for (let round = 0; round < 10; round++) {
      const top = await tokens.create(service(root))
      const middle = await tokens.create(service(top.row))
      const leaf = await tokens.create(service(middle.row))
      const orphan = await tokens.create(service(null))
      const tree = [top, middle, leaf]
      for (const node of world.nodes)
        for (const { credential } of [...tree, orphan]) expect(await node.tokens.lookup(credential)).toBeDefined()
      await tokens.revoke(top.row.id)
      for (const node of world.nodes) {
        for (const { credential } of tree) expect(await node.tokens.lookup(credential)).toBeUndefined()
        expect(await node.tokens.lookup(orphan.credential)).toBeDefined()
      }
      const ids = tree.map(({ row }) => row.id)
      expect(revoked.splice(0).toSorted()).toEqual(ids.toSorted())
      expect(await world.sql('SELECT id FROM tokens WHERE id IN (?)', [ids])).toEqual([])
    }
  })

  test('use against revocation: no worker accepts a token after its revocation was answered', async () => {
    const { credential, row } = await world.node.tokens.create(service(root))
    let answered = false
    const users = world.nodes.map(async ({ tokens }) => {
      for (let after = 0; after < 20; ) {
        const late = answered
        const found = await tokens.lookup(credential)
        if (late) {
          after++
          expect(found).toBeUndefined()
        }
        await new Promise(setImmediate)
      }
    })
    await world.node.tokens.revoke(row.id)
    answered = true
    await Promise.all(users)
  })

  test('children made while their parent is revoked do not survive', async () => {
    for (let round = 0; round < 5; round++) {
      const parent = await world.node.tokens.create(service(root))
      const births = world.nodes.flatMap(({ tokens }) =>
        Array.from({ length: 8 }, () => tokens.create(service(parent.row)).catch(() => undefined)),
      )
      await world.node.tokens.revoke(parent.row.id)
      for (const child of await Promise.all(births))
        if (child) for (const node of world.nodes) expect(await node.tokens.lookup(child.credential)).toBeUndefined()
    }
  })

  test('two revocations of one tree, and of a missing one, both succeed', async () => {
    const parent = await world.node.tokens.create(service(root))
    await Promise.all(Array.from({ length: 5 }, () => world.node.tokens.create(service(parent.row))))
    await Promise.all(world.nodes.map(({ tokens }) => tokens.revoke(parent.row.id)))
    await world.node.tokens.revoke(parent.row.id)
    expect(await world.sql('SELECT id FROM tokens WHERE parent = ?', [parent.row.id])).toEqual([])
  })

  test('a wide tree goes whole, page by page', async () => {
    const parent = await world.node.tokens.create(service(root))
    const children = await Promise.all(Array.from({ length: 450 }, () => world.node.tokens.create(service(parent.row))))
    const [first] = children
    const grandchild = await world.node.tokens.create(service(first?.row ?? null))
    world.node.revoked.splice(0)
    await world.node.tokens.revoke(parent.row.id)
    expect(world.node.revoked).toHaveLength(452)
    expect(world.node.revoked.at(-1)).toBe(parent.row.id)
    expect(world.node.revoked.indexOf(grandchild.row.id)).toBeLessThan(world.node.revoked.indexOf(first?.row.id ?? ''))
    expect(await world.sql('SELECT id FROM tokens WHERE parent = ?', [parent.row.id])).toEqual([])
  })

  test('a revocation that a crash cut short has worked, and is finished by repeating it', async () => {
    const { tokens } = world.node
    const dying = tokensWith(world, { revokeByToken: async () => Promise.reject(new Error('crash')) })
    const parent = await tokens.create(service(root))
    const child = await tokens.create(service(parent.row))
    for (const node of world.nodes) expect(await node.tokens.lookup(child.credential)).toBeDefined()
    await expect(dying.revoke(parent.row.id)).rejects.toThrow('crash')
    for (const node of world.nodes)
      for (const { credential } of [parent, child]) expect(await node.tokens.lookup(credential)).toBeUndefined()
    await tokens.revoke(parent.row.id)
    expect(await world.sql('SELECT id FROM tokens WHERE id IN (?, ?)', [parent.row.id, child.row.id])).toEqual([])
  })

  test('a tree grows no higher than a request is willing to climb', async () => {
    let parent = root
    const climb = async () => {
      for (let n = 0; n < 40; n++) parent = (await world.node.tokens.create(service(parent))).row
    }
    await expect(climb()).rejects.toThrow('32')
  })

  test('accessors find a living token but do not authenticate', async () => {
    const { credential, row } = await world.node.tokens.create(service(root))
    expect((await world.node.tokens.withAccessor(row.accessor))?.id).toBe(row.id)
    expect(await world.node.tokens.lookup(row.accessor)).toBeUndefined()
    expect(await world.node.tokens.withAccessor(row.accessor.toLowerCase())).toBeUndefined()
    expect(await world.node.tokens.withAccessor(`${row.accessor} `)).toBeUndefined()
    expect(await world.node.tokens.withAccessor(credential)).toBeUndefined()
  })

  test('accessors are listed in order, page by page, of tokens that work, edited rows or not', async () => {
    const { tokens } = world.node
    const made = await Promise.all(Array.from({ length: 6 }, () => tokens.create(service(root))))
    const [edited, spoilt, gone] = made.map(({ row }) => row)
    await world.sql("UPDATE tokens SET display_name = 'x' WHERE id = ?", [edited?.id])
    await world.sql('UPDATE tokens SET expires_at = 9223372036854775807 WHERE id = ?', [spoilt?.id])
    await world.sql("UPDATE tokens SET state = 'revoked' WHERE id = ?", [gone?.id])
    const all = await tokens.accessors('', Number.POSITIVE_INFINITY)
    expect(all).toEqual(all.toSorted())
    for (const { row } of made) expect(all.includes(row.accessor), row.accessor).toBe(row.id !== gone?.id)
    expect(await tokens.accessors(all[1] ?? '', 2)).toEqual(all.slice(2, 4))
    for (const { id } of [edited, spoilt, gone].filter((row) => row !== undefined))
      await world.sql('DELETE FROM tokens WHERE id = ?', [id])
  })

  test('no credential lies in any table', async () => {
    const { credential } = await world.node.tokens.create(service(root, { meta: { of: 'canary' } }))
    const tables = await world.sql(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
    )
    let canaries = 0
    for (const { name } of tables)
      for (const row of await world.sql(`SELECT * FROM ${name}`))
        for (const value of Object.values(row)) {
          const text = Buffer.isBuffer(value) ? value.toString('latin1') : String(value)
          if (text.includes('canary')) canaries++
          for (const secret of [credential, world.rootToken, credential.slice(4, 29)])
            expect(text, `${name}`).not.toContain(secret)
        }
    expect(canaries).toBe(1)
  })
})

describe('the owner of the database', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld(2)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  async function fresh() {
    const made = await world.node.tokens.create(service(null, { ttlSeconds: 60 }))
    return { ...made, id: made.row.id }
  }
  /** Asked of a worker that has not seen the token yet. */
  const refused = async (credential: string) => {
    await expect(async () => world.nodes[1]?.tokens.lookup(credential)).rejects.toThrow(DamagedRow)
  }

  test.each([
    ['policies', `policies = '["root"]'`],
    ['expiry', 'expires_at = expires_at + 1000000'],
    ['end', 'expires_at = NULL'],
    ['parent', `parent = UUID()`],
    ['state', `state = 'x'`],
    ['epoch', 'epoch = epoch + 1'],
    ['accessor', `accessor = 'abcdefghijklmnopqrstuvwx'`],
  ])('cannot change a token’s %s', async (_, change) => {
    const { credential, id } = await fresh()
    await world.sql(`UPDATE tokens SET ${change} WHERE id = ?`, [id])
    await refused(credential)
    await world.sql('DELETE FROM tokens WHERE id = ?', [id])
  })

  test('cannot swap the hashes of two tokens', async () => {
    const [one, two] = [await fresh(), await fresh()]
    const [a] = await world.sql('SELECT hash FROM tokens WHERE id = ?', [one.id])
    const [b] = await world.sql('SELECT hash FROM tokens WHERE id = ?', [two.id])
    await world.sql('UPDATE tokens SET hash = REPEAT(CHAR(0), 32) WHERE id = ?', [one.id])
    await world.sql('UPDATE tokens SET hash = ? WHERE id = ?', [a?.hash, two.id])
    await world.sql('UPDATE tokens SET hash = ? WHERE id = ?', [b?.hash, one.id])
    await refused(one.credential)
    await refused(two.credential)
  })

  test('cannot give a token the uuid of another', async () => {
    const [one, two] = [await fresh(), await fresh()]
    await world.sql('DELETE FROM tokens WHERE id = ?', [one.id])
    await world.sql('UPDATE tokens SET id = ? WHERE id = ?', [one.id, two.id])
    await refused(two.credential)
    expect(await world.nodes[1]?.tokens.lookup(one.credential)).toBeUndefined()
  })

  test('cannot free a child by deleting its parent', async () => {
    const parent = await fresh()
    const child = await world.node.tokens.create(service(parent.row))
    await world.sql('DELETE FROM tokens WHERE id = ?', [parent.id])
    expect(await world.nodes[1]?.tokens.lookup(child.credential)).toBeUndefined()
  })
})

test('guesses are refused even when neither database nor HSM is there to be asked', async () => {
  const world = await createWorld()
  const { tokens } = world.node
  const { credential } = await tokens.create(service(null))
  await world[Symbol.asyncDispose]()
  for (const guess of ['hvs.x', `${credential}x`, `${credential.slice(0, -1)}${credential.endsWith('a') ? 'b' : 'a'}`])
    expect(tokens.lookup(guess)).toBeUndefined()
})

test('an initialisation repeated after a crash leaves one root token and one set of policies', async () => {
  await using world = await createWorld()
  const { database, tokens, policies } = world.node
  const access = await prepareAccess({ database, keys: world.keys, clock: world.clock })
  await database.transaction((tx) => access.write(tx))
  expect(await tokens.lookup(access.rootToken)).toMatchObject({ policies: ['root'] })
  expect(await policies.names()).toEqual(['default', 'root'])
  expect(await world.sql('SELECT id FROM tokens')).toHaveLength(1)
})

test('a custom root token is there from the first start, and tokens of an earlier epoch are void', async () => {
  await using world = await createWorld(1, 'my-root')
  expect(world.rootToken).toBe('my-root')
  expect(await world.node.tokens.lookup('my-root')).toMatchObject({ policies: ['root'] })
  const { credential, row } = await world.node.tokens.create(service(null))
  const later = tokensWith(world, {}, 2)
  expect(await later.lookup(credential)).toBeUndefined()
  expect(await later.get(row.id)).toBeUndefined()
})
