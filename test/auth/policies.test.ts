import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../src/auth/acl/decide.ts'
import { defaultPolicyText } from '../../src/auth/acl/default.ts'
import { table as tokenTable } from '../../src/auth/methods/token.ts'
import { policyTable } from '../../src/auth/policytable.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { table as systemTable } from '../../src/system/index.ts'
import { createWorld, type World } from './world.ts'

const grants = (...words: string[]) => `path "p/*" { capabilities = ${JSON.stringify(words)} }`

describe('policies', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld(3)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })
  const may = async (node: World['node'], name: string, capability: 'read' | 'update' = 'read') =>
    decide(await node.policies.acl([name]), capability, 'p/x').allowed

  test('the default policy is there from the beginning and can be replaced, not deleted', async () => {
    const { policies } = world.node
    expect(await policies.names()).toEqual(expect.arrayContaining(['default', 'root']))
    const acl = await policies.acl(['default'])
    expect(decide(acl, 'read', 'auth/token/lookup-self').allowed).toBe(true)
    expect(decide(acl, 'update', 'auth/token/create').allowed).toBe(false)
    await expect(policies.remove('Default')).rejects.toThrow('cannot delete default policy')
    const before = await policies.read('default')
    await policies.write('default', grants('read'))
    expect(decide(await policies.acl(['default']), 'read', 'auth/token/lookup-self').allowed).toBe(false)
    await policies.write('default', before?.text)
  })

  test('the default policy grants only what a route takes, by the name of the right that its method needs', () => {
    const rights: Readonly<Record<string, string>> = { GET: 'read', POST: 'update', LIST: 'list', DELETE: 'delete' }
    const routes = Object.entries({ sys: systemTable, 'auth/token': tokenTable }).flatMap(([mount, table]) =>
      Object.values(table).map(({ method, path }) => ({ right: rights[method], path: `${mount}/${path}` })),
    )
    const rules = [...defaultPolicyText.matchAll(/path "([^"]+)" \{\s*capabilities = \["(\w+)"\]\s*\}/g)]
    expect(rules).toHaveLength(defaultPolicyText.split('path "').length - 1)
    for (const [, path = '', right = ''] of rules) {
      const pattern = new RegExp(`^${path.replace('*', ':.+')}$`)
      expect(
        routes.filter((route) => route.right === right && pattern.test(route.path)),
        path,
      ).not.toEqual([])
    }
  })

  test('root cannot be written or removed, and reads as empty', async () => {
    const { policies } = world.node
    await expect(policies.write('ROOT', grants('read'))).rejects.toThrow('cannot update "root" policy')
    await expect(policies.remove('root')).rejects.toThrow('cannot delete "root" policy')
    expect(await policies.read('root')).toEqual({ name: 'root', text: '' })
  })

  test('names have no case, and nothing is stored under a text that was refused', async () => {
    const { policies } = world.node
    expect(await policies.write('MixEd', grants('read'))).toMatchObject({ name: 'mixed' })
    expect(await policies.read('mIXed')).toEqual({ name: 'mixed', text: grants('read') })
    await policies.write('mixed', Buffer.from(grants('update')).toString('base64'))
    expect((await policies.read('mixed'))?.text).toBe(grants('update'))
    await policies.remove('MIXED')
    expect(await policies.read('mixed')).toBeUndefined()
    await policies.remove('mixed')
    for (const text of [undefined, '', ' \n'])
      await expect(policies.write('bad', text)).rejects.toThrow("'policy' parameter not supplied or empty")
    await expect(policies.write('bad', 'path "a" { capabilities = ["fly"] }')).rejects.toThrow('failed to parse policy')
    await expect(policies.write('', grants('read'))).rejects.toThrow('policy name')
    await expect(policies.write('a\0b', grants('read'))).rejects.toThrow('policy name')
    expect(await policies.unknown(['root', 'default', 'bad'])).toEqual(['bad'])
  })

  test('a policy that takes rights away is effective on every worker once it is written', async () => {
    const [one, ...others] = world.nodes
    if (one === undefined) throw new Error('no node')
    for (let round = 0; round < 20; round++) {
      await one.policies.write('shared', grants('read'))
      for (const node of others) expect(await may(node, 'shared')).toBe(true)
      await one.policies.write('shared', grants(round % 2 ? 'deny' : 'update'))
      for (const node of world.nodes) expect(await may(node, 'shared')).toBe(false)
    }
    await one.policies.write('shared', grants('read'))
    for (const node of others) expect(await may(node, 'shared')).toBe(true)
    await one.policies.remove('shared')
    for (const node of others) expect(await may(node, 'shared')).toBe(false)
  })

  test('writers of several workers do not lose each other’s policies', async () => {
    await Promise.all(
      world.nodes.flatMap(({ policies }, n) => [1, 2, 3].map((k) => policies.write(`of-${n}-${k}`, grants('read')))),
    )
    const names = await world.node.policies.names()
    for (const n of world.nodes.keys()) for (const k of [1, 2, 3]) expect(names).toContain(`of-${n}-${k}`)
  })
})

test('more policies than fit on a page are one set', async () => {
  await using world = await createWorld()
  const { database, policies } = world.node
  const table = database.table(policyTable)
  const row = (n: number) => ({ name: `n${n}`, text: grants('read'), createdAt: 0, updatedAt: 0 })
  await database.transaction(async (tx) => {
    const old = await table.list(tx, {}, { by: 'id', limit: 10 })
    const more = await table.insertMany(
      tx,
      Array.from({ length: 1100 }, (_, n) => row(n)),
    )
    await database.head('policies').advance(tx, [...old, ...more])
  })
  expect(await policies.names()).toHaveLength(1102)
  await policies.write('n7', grants('deny'))
  expect(decide(await policies.acl(['n7', 'n8']), 'read', 'p/x').allowed).toBe(false)
})

describe('the owner of the database', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld()
    await world.node.policies.write('app', grants('read'))
    await world.node.policies.write('ops', grants('update'))
    await world.node.policies.write('stop', grants('deny'))
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  /** Checks that a worker which reads the edited tables trusts no policy; then restores them. */
  async function attacked(...statements: string[]): Promise<void> {
    const { sql } = world
    for (const table of ['policies', 'heads']) await sql(`CREATE TABLE saved_${table} AS SELECT * FROM ${table}`)
    try {
      for (const statement of statements) await sql(statement)
      await world.node.database.transaction(async (tx) => tx.touch('policies', 'set'))
      const acl = async () => decide(await world.node.policies.acl(['app', 'stop']), 'read', 'p/x')
      await expect(acl()).rejects.toThrow(DamagedRow)
      await expect(world.node.policies.write('app', grants('update'))).rejects.toThrow(DamagedRow)
      expect(decide(await world.node.policies.acl(['root']), 'read', 'p/x').allowed).toBe(true)
    } finally {
      for (const table of ['policies', 'heads']) {
        await sql(`DELETE FROM ${table}`)
        await sql(`INSERT INTO ${table} SELECT * FROM saved_${table}`)
        await sql(`DROP TABLE saved_${table}`)
      }
      await world.node.database.transaction(async (tx) => tx.touch('policies', 'set'))
      expect(decide(await world.node.policies.acl(['app', 'stop']), 'read', 'p/x').missing).toEqual(['read'])
    }
  }

  test('cannot keep the names from being listed', async () => {
    await world.sql("UPDATE policies SET updated_at = updated_at + 1 WHERE name = 'ops'")
    await world.node.database.transaction(async (tx) => tx.touch('policies', 'set'))
    expect(await world.node.policies.names()).toEqual(['app', 'default', 'ops', 'root', 'stop'])
    await expect((async () => world.node.policies.acl(['ops']))()).rejects.toThrow(DamagedRow)
    await world.sql("UPDATE policies SET updated_at = updated_at - 1 WHERE name = 'ops'")
    await world.node.database.transaction(async (tx) => tx.touch('policies', 'set'))
  })

  test('cannot edit a policy', () => attacked(`UPDATE policies SET text = REPLACE(text, 'deny', 'read')`))
  test('cannot delete a policy that denies', () => attacked(`DELETE FROM policies WHERE name = 'stop'`))
  test('cannot delete all policies with their head', () => attacked('DELETE FROM policies', 'DELETE FROM heads'))
  test('cannot give a policy another name', () =>
    attacked(`DELETE FROM policies WHERE name = 'stop'`, `UPDATE policies SET name = 'stop' WHERE name = 'ops'`))
  test('cannot swap two names', () =>
    attacked(
      `UPDATE policies SET name = 'x' WHERE name = 'stop'`,
      `UPDATE policies SET name = 'stop' WHERE name = 'app'`,
      `UPDATE policies SET name = 'app' WHERE name = 'x'`,
    ))
  test('cannot copy a policy under another name', () =>
    attacked(
      `CREATE TABLE forged AS SELECT * FROM policies WHERE name = 'ops'`,
      `UPDATE forged SET name = 'new', id = UUID()`,
      'INSERT INTO policies SELECT * FROM forged',
      'DROP TABLE forged',
    ))

  test('cannot put back an earlier revision', async () => {
    const { sql, node } = world
    await sql(`CREATE TABLE earlier AS SELECT * FROM policies WHERE name = 'ops'`)
    await node.policies.write('ops', grants('list'))
    await attacked(`DELETE FROM policies WHERE name = 'ops'`, 'INSERT INTO policies SELECT * FROM earlier')
  })
})
