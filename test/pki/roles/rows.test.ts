import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done } from '../../api/node.ts'
import { openSql, type Sql } from '../../attack/sql.ts'
import type { Client } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'

/** Rows of roles: the same in every worker, and gone with their mount. */

let server: TestServer
let sql: Sql
let root: Client
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  sql = await openSql(server.database.url)
  root = server.client()
}, 120_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

/** Each request has a connection of its own, and workers take connections in turn: both answer. */
const readAll = async () => {
  const replies = await Promise.all(Array.from({ length: 6 }, () => root.get('pki/roles/shared')))
  return [...new Set(replies.map(({ status, body }) => (status === 404 ? 'absent' : ouOf(body))))]
}
const ouOf = (body: unknown) => (body as { data: { ou: string[] } }).data.ou.join()

test('a write is in force on every worker at once: a change, a deletion, and a name that comes back', async () => {
  for (let round = 0; round < 8; round++) {
    await done(root.post('pki/roles/shared', { ou: `a${round}` }))
    expect(await readAll()).toEqual([`a${round}`])
    await done(root.call('PATCH', 'pki/roles/shared', { ou: `b${round}` }))
    expect(await readAll()).toEqual([`b${round}`])
    await done(root.delete('pki/roles/shared'))
    expect(await readAll()).toEqual(['absent'])
  }
})

test('patches of one role at once lose nothing of each other', async () => {
  await done(root.post('pki/roles/patched', {}))
  const fields = ['ou', 'organization', 'country', 'locality', 'province', 'postal_code', 'street_address']
  await Promise.all(fields.map((field) => done(root.call('PATCH', 'pki/roles/patched', { [field]: field }))))
  const { data } = (await root.get('pki/roles/patched')).body as { data: Record<string, unknown> }
  for (const field of fields) expect(data[field]).toEqual([field])
})

test('a name that several create at once has one row', async () => {
  await Promise.all(Array.from({ length: 8 }, (_, index) => done(root.post('pki/roles/crowded', { ou: `${index}` }))))
  const [row] = await sql.rows("SELECT COUNT(*) AS n FROM pki_roles WHERE name = 'crowded'")
  expect(Number(row?.n)).toBe(1)
})

test('the roles of a removed mount are removed, in portions, and no others', async () => {
  await done(root.post('sys/mounts/gone', { type: 'pki' }))
  await done(root.post('pki/roles/stays', {}))
  await done(root.post('gone/roles/first', {}))
  const { mount } = await sql.row("SELECT mount FROM pki_roles WHERE name = 'first'")
  // Copies suffice: nothing reads them.
  await sql.rows(
    `INSERT INTO pki_roles SELECT UUID(), r.namespace, r.mount, r.rev, r.epoch, r.mac_key_id, r.mac_format, r.mac,
      CONCAT('r', s.seq), r.settings FROM pki_roles r, seq_1_to_1200 s WHERE r.name = 'first'`,
  )
  await done(root.delete('sys/mounts/gone'))
  const left = async () =>
    Number((await sql.row('SELECT COUNT(*) AS n FROM pki_roles WHERE mount = ?', [mount ?? ''])).n)
  while ((await left()) > 0) await delay(100)
  expect((await root.get('pki/roles/stays')).status).toBe(200)
}, 60_000)
