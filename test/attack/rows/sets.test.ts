import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Client } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { clientWith, decrypt, encrypt, expectRefused, expectServed } from '../nodes.ts'
import { openSql, type Row, type Sql, sealedTables } from '../sql.ts'

/** Sets whose shrinking would widen rights: an edit of one member must be noticed by readers of the rest. */

let server: TestServer
let sql: Sql
let root: Client
/** May do everything in transit/ but decrypt. */
let limited: Client
let ciphertext: string
let saved: Map<string, Row[]>

beforeAll(async () => {
  server = await startServer()
  sql = await openSql(server.database.url)
  root = server.client()
  expectServed(await root.post('sys/mounts/other', { type: 'transit' }))
  const all = 'path "transit/*" { capabilities = ["create", "read", "update"] }'
  expectServed(await root.post('sys/policies/acl/all', { policy: all }))
  const not = 'path "transit/decrypt/*" { capabilities = ["deny"] }'
  expectServed(await root.post('sys/policies/acl/not', { policy: not }))
  limited = await clientWith(server, ['all', 'not'])
  ciphertext = await encrypt(root, 'key')
}, 60_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

beforeEach(async () => {
  saved = new Map()
  for (const table of await sealedTables(sql)) saved.set(table, await sql.rows(`SELECT * FROM ${table}`))
  expectServed(await limited.get('transit/keys/key'))
})
/** Once the rows are put back, everything is served again: the refusals came from the edits. */
afterEach(async () => {
  for (const [table, rows] of saved) {
    await sql.rows(`DELETE FROM ${table}`)
    for (const row of rows) await sql.put(table, row)
  }
  await sql.invalidate()
  if (server.pid === 0) await server.start()
  expectServed(await limited.get('transit/keys/key'))
})

const policy = (name: string): Promise<Row> => sql.row('SELECT * FROM policies WHERE name = ?', [name])

/** No request that needs a policy is answered; a root token needs no policy. */
async function expectNoPolicy(): Promise<void> {
  await sql.invalidate()
  expectRefused(await decrypt(limited, 'key', ciphertext))
  expectRefused(await limited.get('transit/keys/key'))
  expectRefused(await root.get('sys/policies/acl/all'))
  expectRefused(await root.post('sys/policies/acl/new', { policy: 'path "a" {}' }))
}

describe('policies', () => {
  test('a policy that is widened is not used, and neither is any other', async () => {
    const text = 'path "*" { capabilities = ["create", "read", "update", "delete", "list", "sudo"] }'
    await sql.rows("UPDATE policies SET text = ? WHERE name = 'all'", [text])
    await expectNoPolicy()
    expectRefused(await limited.get('sys/mounts'))
  })

  test('a policy that denies and is deleted is missed, after a restart too', async () => {
    await sql.rows("DELETE FROM policies WHERE name = 'not'")
    await expectNoPolicy()
    await server.stop()
    await server.start()
    await expectNoPolicy()
  })

  test('policies that were deleted with their head are missed', async () => {
    await sql.rows("DELETE FROM policies WHERE name = 'not'")
    await sql.rows("DELETE FROM heads WHERE `set` = 'policies'")
    await expectNoPolicy()
  })

  test('a whole set that was deleted with its head is no empty set', async () => {
    await sql.rows('DELETE FROM policies')
    await sql.rows("DELETE FROM heads WHERE `set` = 'policies'")
    await expectNoPolicy()
  })

  test('a policy is not another one by its name, nor twice under two', async () => {
    await sql.rows("UPDATE policies SET name = 'nothing' WHERE name = 'not'")
    await expectNoPolicy()
    await sql.put('policies', { ...(await policy('all')), id: randomUUID(), name: 'not' })
    await expectNoPolicy()
  })

  test('an older text of one policy is not used, however well it is sealed', async () => {
    const older = await policy('all')
    expectServed(
      await root.post('sys/policies/acl/all', { policy: 'path "transit/keys/*" { capabilities = ["read"] }' }),
    )
    await sql.put('policies', older)
    await expectNoPolicy()
  })

  test('a policy that was removed is not brought back', async () => {
    const removed = await policy('all')
    expectServed(await root.delete('sys/policies/acl/all'))
    await sql.put('policies', removed)
    await expectNoPolicy()
  })

  test('the head of another set does not vouch for this one', async () => {
    const [mounts] = await sql.rows("SELECT * FROM heads WHERE `set` = 'mounts'")
    await sql.rows("DELETE FROM heads WHERE `set` = 'policies'")
    await sql.put('heads', { ...mounts, id: randomUUID(), set: 'policies' })
    await expectNoPolicy()
  })
})

describe('mounts', () => {
  async function expectNoMount(): Promise<void> {
    await sql.invalidate()
    for (const path of ['sys/mounts', 'transit/keys/key', 'other/keys/key']) expectRefused(await root.get(path), path)
    expectRefused(await root.post('sys/mounts/transit', { type: 'transit' }))
    expectRefused(await decrypt(root, 'key', ciphertext))
  }

  test('a mount that was deleted is missed by all, after a restart too, and cannot be made anew', async () => {
    await sql.rows("DELETE FROM mounts WHERE path = 'transit/'")
    await expectNoMount()
    await server.stop()
    await server.start()
    await expectNoMount()
  })

  test('two mounts do not change their paths', async () => {
    await sql.rows("UPDATE mounts SET path = 'x/' WHERE path = 'transit/'")
    await sql.rows("UPDATE mounts SET path = 'transit/' WHERE path = 'other/'")
    await sql.rows("UPDATE mounts SET path = 'other/' WHERE path = 'x/'")
    await expectNoMount()
  })

  test('a mount that was removed is not brought back with what was in it', async () => {
    const before = new Map(saved)
    expectServed(await root.delete('sys/mounts/other'))
    await sql.put('mounts', before.get('mounts')?.find(({ path }) => path === 'other/') ?? {})
    await expectNoMount()
  })
})

test('without its settings row a cluster does not start, and is not begun anew', async () => {
  await server.stop()
  await sql.rows('DELETE FROM cluster')
  await expect(server.start()).rejects.toThrow(/settings row/)
  await server.kill()
})
