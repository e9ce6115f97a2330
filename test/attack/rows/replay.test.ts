import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Custody } from '../../../src/keys/custody.ts'
import { openHsm, options, Place } from '../../keys/support.ts'
import type { Client, Reply } from '../../support/client.ts'
import type { TestServer } from '../../support/server.ts'
import { clientWith, decrypt, encrypt, expectRefused, expectServed, until } from '../nodes.ts'
import { useOwned } from '../owned.ts'
import type { Row, Sql, Value } from '../sql.ts'

/**
 * Rows that we sealed ourselves, at an earlier time. A seal says that a row was ours, not that it still is: a head
 * reveals an older row, and the anchor an older head. docs/threat-model.md lists the gaps that remain, and the tests
 * that begin with "open" show that the list is true: when one fails, a gap has been closed, so change the list.
 */

let server: TestServer
let sql: Sql
let root: Client

useOwned((owned) => {
  ;({ server, sql, root } = owned)
})

const policyText = (path: string): string => `path "${path}" { capabilities = ["create", "read", "update"] }`

/** Every row of these tables, to be put back later. */
async function copyOf(...tables: string[]): Promise<() => Promise<void>> {
  const copies = new Map<string, Row[]>()
  for (const table of tables) copies.set(table, await sql.rows(`SELECT * FROM ${table}`))
  return async () => {
    for (const [table, rows] of copies) {
      await sql.rows(`DELETE FROM ${table}`)
      for (const row of rows) await sql.put(table, row)
    }
    await sql.invalidate()
  }
}

/** Does the work of a node's hourly job. */
async function anchor(): Promise<void> {
  await using hsm = await openHsm(server.token)
  await using place = await Place.at(server.database.url)
  using custody = await Custody.open(options(hsm, place.database))
  await custody.cluster.anchor()
}

describe('policies, as a set', () => {
  test('open: brought back whole with its head, it is taken until the token was told of the newer one', async () => {
    expectServed(await root.post('sys/policies/acl/p', { policy: policyText('transit/*') }))
    expectServed(await root.post('transit/keys/key'))
    const client = await clientWith(server, ['p'])
    const restore = await copyOf('policies', 'heads')
    expectServed(await root.post('sys/policies/acl/p', { policy: policyText('nothing') }))
    expectRefused(await client.get('transit/keys/key'))
    await restore()
    expectServed(await client.get('transit/keys/key'))
  })

  test('brought back whole behind what the token remembers, it keeps the server from starting', async () => {
    const restore = await copyOf('policies', 'heads')
    const forth = await (async () => {
      expectServed(await root.post('sys/policies/acl/p', { policy: policyText('nothing') }))
      await anchor()
      return copyOf('policies', 'heads')
    })()
    await restore()
    await server.stop()
    await expect(server.start()).rejects.toThrow(/the set policies is at change \d+, the token remembers \d+/)
    await server.kill()
    await forth()
    await server.start()
    expectServed(await root.get('sys/mounts'))
  })
})

test('open: audit devices, brought back whole with their head, are those of then: a newer one gets no line', async () => {
  const file = join(server.stateDirectory, 'newer.log')
  const restore = await copyOf('audit_devices', 'heads')
  expectServed(await root.post('sys/audit/newer', { type: 'file', options: { file_path: file } }))
  const linesOf = async () => {
    const before = statSync(file).size
    expectServed(await root.get('sys/mounts'))
    return statSync(file).size - before
  }
  expect(await linesOf()).toBeGreaterThan(0)
  await restore()
  expect(await linesOf()).toBe(0)
})

describe('rows of no set', () => {
  const rowsOf = async (table: string, column: string, value: Value): Promise<Row[]> =>
    sql.rows(`SELECT * FROM ${table} WHERE ${column} = ?`, [value])

  test('open: an older row of a key is taken, with the floor that it had then', async () => {
    expectServed(await root.post('transit/keys/floor'))
    const old = await encrypt(root, 'floor')
    expectServed(await root.post('transit/keys/floor/rotate'))
    const [before = {}] = await rowsOf('transit_keys', 'name', 'floor')
    expectServed(await root.post('transit/keys/floor/config', { min_decryption_version: 2 }))
    expectRefused(await decrypt(root, 'floor', old))
    await sql.put('transit_keys', before)
    await sql.invalidate()
    expectServed(await decrypt(root, 'floor', old))
  })

  test('an older row of a key from before a rotation is taken, but nothing can be added to what it leaves out', async () => {
    expectServed(await root.post('transit/keys/rotated'))
    const [before = {}] = await rowsOf('transit_keys', 'name', 'rotated')
    expectServed(await root.post('transit/keys/rotated/rotate'))
    const young = await encrypt(root, 'rotated')
    await sql.put('transit_keys', before)
    await sql.invalidate()
    expectRefused(await decrypt(root, 'rotated', young))
    expect(await encrypt(root, 'rotated')).toMatch(/^vault:v1:/)
    expectRefused(await root.post('transit/keys/rotated/rotate'))
  })

  test('open: a revoked token that is put back lives until its own end', async () => {
    const client = await clientWith(server, ['default'])
    const accessor = (await client.get('auth/token/lookup-self')).string('data.accessor')
    const [before = {}] = await rowsOf('tokens', 'accessor', accessor)
    expectServed(await root.post('auth/token/revoke-accessor', { accessor }))
    expectRefused(await client.get('auth/token/lookup-self'))
    await until(async () => (await rowsOf('tokens', 'accessor', accessor)).length === 0)
    await sql.put('tokens', before)
    await sql.invalidate()
    // A credential that had no row is refused for some seconds without a look.
    await until(async () => (await client.get('auth/token/lookup-self')).status < 300)
  })

  test('open: an older row of an issuer is taken, from before it was revoked', async () => {
    const key = { key_type: 'ec', ttl: '100h' }
    expectServed(await root.post('pki/root/generate/internal', { common_name: 'Root', issuer_name: 'root', ...key }))
    const asked = await root.post('pki/intermediate/generate/internal', { common_name: 'Issuer', ...key })
    const csr = expectServed(asked).string('data.csr')
    const signed = await root.post('pki/issuer/root/sign-intermediate', { csr, common_name: 'Issuer', ttl: '50h' })
    const certificate = expectServed(signed).string('data.certificate')
    const made = await root.post('pki/intermediate/set-signed', { certificate })
    const id = expectServed(made).string('data.imported_issuers.0')
    expectServed(await root.post('pki/roles/any', { allow_any_name: true, key_type: 'ec', ttl: '1h' }))
    const issue = () => root.post(`pki/issuer/${id}/issue/any`, { common_name: 'a.example' })
    const [before = {}] = await rowsOf('pki_issuers', 'id', id)
    expectServed(await root.post(`pki/issuer/${id}/revoke`))
    expectRefused(await issue())
    await sql.put('pki_issuers', before)
    await sql.invalidate()
    expectServed(await issue())
  })

  test('open: a lease that is deleted leaves its certificate valid when its token is revoked', async () => {
    expectServed(await root.post('pki/root/generate/internal', { common_name: 'Leasing', key_type: 'ec' }))
    expectServed(await root.post('pki/roles/leased', { allow_any_name: true, key_type: 'ec', generate_lease: true }))
    expectServed(await root.post('sys/policies/acl/leased', { policy: policyText('pki/issue/leased') }))
    const client = await clientWith(server, ['default', 'leased'])
    const issue = async () =>
      expectServed(await client.post('pki/issue/leased', { common_name: 'a.example', ttl: '1h' }))
    const [kept, lost] = [await issue(), await issue()]
    await sql.rows('DELETE FROM leases WHERE lease_id = ?', [lost.string('lease_id')])
    expectServed(await client.post('auth/token/revoke-self'))
    const revokedAt = async ({ string }: Reply) => (await root.get(`pki/cert/${string('data.serial_number')}`)).body
    expect(await revokedAt(kept)).toMatchObject({ data: { revocation_time: expect.not.toBeOneOf([0]) } })
    expect(await revokedAt(lost)).toMatchObject({ data: { revocation_time: 0 } })
  })

  test('open: a deleted key that is put back with all its rows opens what it once sealed', async () => {
    expectServed(await root.post('transit/keys/gone'))
    const ciphertext = await encrypt(root, 'gone')
    expectServed(await root.post('transit/keys/gone/config', { deletion_allowed: true }))
    const [key = {}] = await rowsOf('transit_keys', 'name', 'gone')
    const versions = await rowsOf('transit_versions', 'key_id', key.id ?? null)
    const materials = await rowsOf('materials', 'owner', key.id ?? null)
    expectServed(await root.delete('transit/keys/gone'))
    expectRefused(await decrypt(root, 'gone', ciphertext))
    await sql.put('transit_keys', key)
    for (const row of versions) await sql.put('transit_versions', row)
    await sql.invalidate()
    // Without its material only the name is left.
    expectRefused(await decrypt(root, 'gone', ciphertext))
    for (const row of materials) await sql.put('materials', row)
    await sql.invalidate()
    expectServed(await decrypt(root, 'gone', ciphertext))
  })
})
