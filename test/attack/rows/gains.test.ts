import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Client, Reply } from '../../support/client.ts'
import type { TestServer } from '../../support/server.ts'
import { clientWith, decrypt, encrypt, expectRefused, expectServed } from '../nodes.ts'
import { useOwned } from '../owned.ts'
import type { Row, Sql } from '../sql.ts'

/**
 * Edits of one row or two by which an attacker would gain something: each is refused, never answered from the other
 * rows.
 */

let server: TestServer
let sql: Sql
let root: Client
const undone: (() => Promise<void>)[] = []

useOwned((owned) => {
  ;({ server, sql, root } = owned)
})

const edit = async (table: string, row: Row, changes: Row): Promise<void> =>
  void undone.push(await sql.edit(table, row.id ?? null, changes))
async function remove(table: string, row: Row): Promise<void> {
  await sql.rows(`DELETE FROM ${table} WHERE id = ?`, [row.id ?? null])
  undone.push(() => sql.put(table, row))
}
async function add(table: string, row: Row): Promise<void> {
  await sql.put(table, row)
  undone.push(async () => void (await sql.rows(`DELETE FROM ${table} WHERE id = ?`, [row.id ?? null])))
}

/** A key with two versions, a ciphertext of each, and its rows. */
async function makeKey(name: string) {
  expectServed(await root.post(`transit/keys/${name}`))
  const old = await encrypt(root, name, `old ${name}`)
  expectServed(await root.post(`transit/keys/${name}/rotate`))
  const young = await encrypt(root, name, `young ${name}`)
  const row = await sql.row('SELECT * FROM transit_keys WHERE name = ?', [name])
  const of = (sqlText: string, version: number) => sql.row(`${sqlText} AND version = ?`, [row.id ?? null, version])
  const version = (number: number) => of('SELECT * FROM transit_versions WHERE key_id = ?', number)
  const material = (number: number) => of("SELECT * FROM materials WHERE part = 'key' AND owner = ?", number)
  const open = (ciphertext: string) => () => decrypt(root, name, ciphertext)
  const seal = () => root.post(`transit/encrypt/${name}`, { plaintext: '' })
  return { name, row, version, material, old: open(old), young: open(young), seal }
}
type Key = Awaited<ReturnType<typeof makeKey>>
type Use = () => Promise<Reply>

/** Attacks on key `a` (and an equal one `b`), each with the uses that must be refused then. */
const keyAttacks: Record<string, (a: Key, b: Key) => Promise<Use[]>> = {
  async 'a key and its material called exportable'(a) {
    await edit('transit_keys', a.row, { exportable: 1, allow_plaintext_backup: 1 })
    for (const number of [1, 2]) await edit('materials', await a.material(number), { exportable: 1 })
    return [a.old, a.young, a.seal]
  },
  async 'only the material called exportable'(a) {
    await edit('materials', await a.material(2), { exportable: 1 })
    return [a.young, a.seal]
  },
  async 'a floor lowered, so that what is archived opens again'(a) {
    const raised = expectServed(await root.post(`transit/keys/${a.name}/config`, { min_decryption_version: 2 }))
    expect(raised.body).toMatchObject({ data: { min_decryption_version: 2 } })
    await edit('transit_keys', a.row, { min_decryption_version: 1 })
    return [a.old, a.young]
  },
  async 'the smallest version raised over one that exists'(a) {
    await edit('transit_keys', a.row, { min_available_version: 2 })
    return [a.old, a.young]
  },
  async 'the latest version lowered, so that the old one encrypts again'(a) {
    await edit('transit_keys', a.row, { latest_version: 1 })
    return [a.seal, a.old]
  },
  async 'a deletion allowed'(a) {
    await edit('transit_keys', a.row, { deletion_allowed: 1 })
    return [() => root.delete(`transit/keys/${a.name}`)]
  },
  async 'the newest version row deleted'(a) {
    await remove('transit_versions', await a.version(2))
    return [a.seal, a.old, a.young]
  },
  async 'the newest version row deleted, and the key told so'(a) {
    await remove('transit_versions', await a.version(2))
    await edit('transit_keys', a.row, { latest_version: 1 })
    return [a.seal, a.old]
  },
  async 'the oldest version row deleted'(a) {
    await remove('transit_versions', await a.version(1))
    return [a.seal, a.old, a.young]
  },
  async 'a material deleted'(a) {
    await remove('materials', await a.material(2))
    return [a.seal, a.young]
  },
  async 'a version row copied to another key'(a, b) {
    await remove('transit_versions', await b.version(2))
    await add('transit_versions', { ...(await a.version(2)), id: randomUUID(), key_id: b.row.id ?? null })
    return [b.seal, b.young]
  },
  async 'a version row copied to another key with its own id'(a, b) {
    const theirs = await b.version(2)
    await edit('transit_versions', theirs, { ...(await a.version(2)), id: theirs.id ?? null, key_id: b.row.id ?? null })
    return [b.seal, b.young]
  },
  async 'two versions that change their materials'(a, b) {
    const [mine, theirs] = [await a.version(2), await b.version(2)]
    await edit('transit_versions', mine, { material: theirs.material ?? null })
    await edit('transit_versions', theirs, { material: mine.material ?? null })
    return [a.seal, b.seal, a.young, b.young]
  },
  async 'a blob moved to another key'(a, b) {
    await edit('materials', await a.material(2), { blob: (await b.material(2)).blob ?? null })
    return [a.seal, a.young]
  },
  async 'a blob moved to another key with everything that its row says'(a, b) {
    const mine = await a.material(2)
    const { id = null, owner = null } = mine
    await edit('materials', mine, { ...(await b.material(2)), id, owner })
    return [a.seal, a.young]
  },
  async 'a key copied to another name'(a) {
    await add('transit_keys', { ...a.row, id: randomUUID(), name: `${a.name}-copy` })
    return [() => root.post(`transit/encrypt/${a.name}-copy`, { plaintext: '' })]
  },
  async 'a key moved to another mount with all that is its own'(a) {
    const { id } = await sql.row("SELECT id FROM mounts WHERE path = 'other/'")
    const mount = id ?? null
    await edit('transit_keys', a.row, { mount })
    for (const number of [1, 2]) {
      await edit('transit_versions', await a.version(number), { mount })
      await edit('materials', await a.material(number), { mount })
    }
    return [() => root.post(`other/encrypt/${a.name}`, { plaintext: '' }), a.young]
  },
}

/** Attacks on the row of a token with few rights. */
const tokenAttacks: Record<string, (row: Row, rootRow: Row) => Promise<void>> = {
  'root put among the policies': (row) => edit('tokens', row, { policies: '["root"]' }),
  'an end put off': (row) => edit('tokens', row, { expires_at: null, ttl_seconds: 0 }),
  'a token made an orphan': (row) => edit('tokens', row, { parent: null, orphan: 1 }),
  async 'the row of a root token under the credential'(row, rootRow) {
    await remove('tokens', row)
    await edit('tokens', rootRow, { hash: row.hash ?? null })
  },
  async 'a copy of a root token under the credential'(row, rootRow) {
    await remove('tokens', row)
    await add('tokens', { ...rootRow, id: randomUUID(), accessor: row.accessor ?? null, hash: row.hash ?? null })
  },
}

test('no edit gains anything, in a running node or across a restart', async () => {
  expectServed(await root.post('sys/mounts/other', { type: 'transit' }))
  const refused: [about: string, use: Use][] = []
  for (const [about, attack] of Object.entries(keyAttacks)) {
    const name = `k${refused.length}`
    for (const use of await attack(await makeKey(`${name}a`), await makeKey(`${name}b`))) refused.push([about, use])
  }
  const ofClient = async (client: Client) =>
    sql.row('SELECT * FROM tokens WHERE accessor = ?', [
      expectServed(await client.get('auth/token/lookup-self')).string('data.accessor'),
    ])
  for (const [about, attack] of Object.entries(tokenAttacks)) {
    const client = await clientWith(server, ['default'])
    await attack(await ofClient(client), await ofClient(await clientWith(server, ['root'])))
    refused.push([about, () => client.get('auth/token/lookup-self')], [about, () => client.get('sys/mounts')])
  }
  const parent = await clientWith(server, ['root'])
  const child = expectServed(await parent.post('auth/token/create', {})).string('auth.client_token')
  await remove('tokens', await ofClient(parent))
  refused.push(['the row above a token deleted', () => server.client(child).get('auth/token/lookup-self')])

  await sql.invalidate()
  for (const [about, use] of refused) expectRefused(await use(), about)
  await server.stop()
  await server.start()
  for (const [about, use] of refused) expectRefused(await use(), `restarted, ${about}`)

  // Once the rows are put back, everything is served again: the refusals came from the edits.
  for (const undo of undone.toReversed()) await undo()
  await sql.invalidate()
  const { keys } = (expectServed(await root.list('transit/keys')).body as { data: { keys: string[] } }).data
  expect(keys.length).toBeGreaterThan(20)
  for (const key of keys) expectServed(await root.post(`transit/encrypt/${key}`, { plaintext: '' }), key)
}, 120_000)
