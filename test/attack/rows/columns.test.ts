import { beforeAll, expect, test } from 'vitest'
import { quotedIn, tableOf } from '../../commands/docs/document.ts'
import type { Client, Reply } from '../../support/client.ts'
import type { TestServer } from '../../support/server.ts'
import { clientWith, decrypt, encrypt, expectRefused, expectServed, until } from '../nodes.ts'
import { useOwned } from '../owned.ts'
import { others, type Row, type Sql, sealedTables } from '../sql.ts'

/** Edits that the schema itself offers: every column of every sealed table, in a row that is in use. */

let server: TestServer
let sql: Sql
let root: Client

useOwned((owned) => {
  ;({ server, sql, root } = owned)
})
beforeAll(async () => {
  expectServed(await root.post('pki/root/generate/internal', { common_name: 'Edited', key_type: 'ec', key_name: 'k' }))
})

/** One edit of one column of a row that nothing else depends on, and the request that depends on that row. */
interface Edit {
  readonly about: string
  undo(): Promise<void>
  use(): Promise<Reply>
}

/** Every edit of a table's columns, each in a row of its own that `make` makes. */
async function edits(
  table: string,
  make: (name: string) => Promise<{ row: Row; use(): Promise<Reply> }>,
): Promise<Edit[]> {
  const made: Edit[] = []
  for (const column of await sql.columns(table)) {
    // The number of ways to change the column depends on its value in a row.
    for (let way = 0, ways = 1; way < ways; way++) {
      const about = `${table}.${column.name} ${way}`
      const { row, use } = await make(about.replace(/\W/g, '-'))
      const values = others(column, row[column.name] ?? null)
      ways = values.length
      const undo = await sql.edit(table, row.id ?? null, { [column.name]: values[way] ?? null })
      made.push({ about, undo, use })
    }
  }
  return made
}

async function keyAndCiphertext(name: string) {
  expectServed(await root.post(`transit/keys/${name}`))
  const ciphertext = await encrypt(root, name)
  return {
    key: await sql.row('SELECT * FROM transit_keys WHERE name = ?', [name]),
    use: () => decrypt(root, name, ciphertext),
  }
}

test('no column of a key, a version, a material or a token can be edited, in a running node or across a restart', async () => {
  const all = [
    ...(await edits('transit_keys', async (name) => {
      const { key: row, use } = await keyAndCiphertext(name)
      return { row, use }
    })),
    ...(await edits('transit_versions', async (name) => {
      const { key, use } = await keyAndCiphertext(name)
      return { row: await sql.row('SELECT * FROM transit_versions WHERE key_id = ?', [key.id ?? null]), use }
    })),
    ...(await edits('materials', async (name) => {
      const { key, use } = await keyAndCiphertext(name)
      const [owner] = [key.id ?? null]
      return { row: await sql.row("SELECT * FROM materials WHERE owner = ? AND part = 'key'", [owner]), use }
    })),
    ...(await edits('tokens', async (name) => {
      const client = await clientWith(server, ['default'], { display_name: name, meta: { a: 'b' } })
      const use = () => client.get('auth/token/lookup-self')
      const accessor = (await use()).string('data.accessor')
      return { row: await sql.row('SELECT * FROM tokens WHERE accessor = ?', [accessor]), use }
    })),
  ]
  expect(all.length).toBeGreaterThan(100)
  await sql.invalidate()
  for (const { about, use } of all) expectRefused(await use(), about)
  expect(server.output()).toContain('a damaged row was refused')

  await server.stop()
  await server.start()
  for (const { about, use } of all) expectRefused(await use(), `restarted, ${about}`)

  for (const { undo } of all) await undo()
  await sql.invalidate()
  for (const { about, use } of all) {
    // A credential that had no row is refused for some seconds without a look.
    if (about.startsWith('tokens.')) await until(async () => (await use()).status < 300)
    expectServed(await use(), `put back, ${about}`)
  }
}, 60_000)

test.each([
  ['policies', "name = 'limited'"],
  ['heads', "`set` = 'policies'"],
  ['mounts', "path = 'transit/'"],
  ['heads', "`set` = 'mounts'"],
])(
  'no column of %s where %s can be edited: nothing that hangs on the set is served',
  async (table, where) => {
    expectServed(
      await root.post('sys/policies/acl/limited', { policy: 'path "transit/*" { capabilities = ["update"] }' }),
    )
    const limited = await clientWith(server, ['limited'])
    expectServed(await root.post('transit/keys/shared'))
    const ciphertext = await encrypt(root, 'shared')
    const row = await sql.row(`SELECT * FROM ${table} WHERE ${where}`)
    for (const column of await sql.columns(table)) {
      for (const value of others(column, row[column.name] ?? null)) {
        const undo = await sql.edit(table, row.id ?? null, { [column.name]: value })
        await sql.invalidate()
        expectRefused(await decrypt(limited, 'shared', ciphertext), `${table}.${column.name}`)
        await undo()
      }
    }
    await sql.invalidate()
    expectServed(await decrypt(limited, 'shared', ciphertext))
  },
  60_000,
)

test('no column of the settings of a mount can be edited: neither they nor what they allow is served', async () => {
  expectServed(await root.post('transit/config/keys', { disable_upsert: true }))
  const row = await sql.row('SELECT * FROM transit_config WHERE disable_upsert = 1')
  const upsert = () => root.post('transit/encrypt/upserted', { plaintext: 'aGVsbG8=' })
  for (const column of await sql.columns('transit_config')) {
    for (const value of others(column, row[column.name] ?? null)) {
      const undo = await sql.edit('transit_config', row.id ?? null, { [column.name]: value })
      await sql.invalidate()
      expectRefused(await root.get('transit/config/keys'), column.name)
      expectRefused(await upsert(), column.name)
      await undo()
    }
  }
  await sql.invalidate()
  expect((await root.get('transit/config/keys')).body).toMatchObject({ data: { disable_upsert: true } })
  expectRefused(await upsert())
}, 60_000)

test('no column of a role can be edited: it is neither read nor changed', async () => {
  expectServed(await root.post('pki/roles/edited', { allow_any_name: false }))
  const row = await sql.row("SELECT * FROM pki_roles WHERE name = 'edited'")
  const settings = String(row.settings).replace('"allow_any_name":false', '"allow_any_name":true')
  const edits = (await sql.columns('pki_roles')).flatMap(({ name, ...column }) =>
    others({ name, ...column }, row[name] ?? null).map((value) => ({ [name]: value })),
  )
  for (const edit of [...edits, { settings }]) {
    const undo = await sql.edit('pki_roles', row.id ?? null, edit)
    await sql.invalidate()
    expectRefused(await root.get('pki/roles/edited'), JSON.stringify(edit))
    expectRefused(await root.call('PATCH', 'pki/roles/edited', { ou: 'x' }), JSON.stringify(edit))
    await undo()
  }
  await sql.invalidate()
  expectServed(await root.get('pki/roles/edited'))
}, 60_000)

test('no column of an authority, its issuers, keys or site can be edited: nothing is issued', async () => {
  expectServed(await root.post('pki/config/cluster', { path: 'http://a.example', aia_path: 'http://b.example' }))
  const urls = { issuing_certificates: '{{cluster_path}}/ca', enable_templating: true }
  expectServed(await root.post('pki/config/urls', urls))
  expectServed(await root.post('pki/roles/any', { allow_any_name: true, key_type: 'ec' }))
  const issue = () => root.post('pki/issue/any', { common_name: 'a.example', ttl: '1h' })
  expectServed(await issue())
  const served: string[] = []
  for (const table of ['pki_authorities', 'pki_clusters', 'pki_issuers', 'pki_keys']) {
    const row = await sql.row(`SELECT * FROM ${table}`)
    for (const column of await sql.columns(table)) {
      for (const value of others(column, row[column.name] ?? null)) {
        const undo = await sql.edit(table, row.id ?? null, { [column.name]: value })
        await sql.invalidate()
        if ((await issue()).status < 400) served.push(`${table}.${column.name} = ${value}`)
        await undo()
      }
    }
  }
  expect(served).toEqual([])
  await sql.invalidate()
  expectServed(await issue())
}, 120_000)

test('no column of a revocation can be edited: its certificate is not read as a good one', async () => {
  expectServed(await root.post('pki/roles/leased', { allow_any_name: true, key_type: 'ec', generate_lease: true }))
  const issued = await root.post('pki/issue/leased', { common_name: 'a.example', ttl: '1h' })
  expectServed(issued)
  expectServed(await root.post('sys/leases/revoke', { lease_id: issued.string('lease_id') }))
  const serial = issued.string('data.serial_number')
  const read = () => root.get(`pki/cert/${serial}`)
  const number = Buffer.from(serial.replaceAll(':', ''), 'hex')
  const row = await sql.row('SELECT * FROM pki_revocations WHERE serial = ?', [number])
  const good: string[] = []
  for (const column of await sql.columns('pki_revocations')) {
    // A row moved to another mount or serial is missing here, as if it had been deleted: a known gap, but for lists.
    if (column.name === 'mount' || column.name === 'serial') continue
    for (const value of others(column, row[column.name] ?? null)) {
      const undo = await sql.edit('pki_revocations', row.id ?? null, { [column.name]: value })
      await sql.invalidate()
      if ((await read()).status < 400) good.push(`${column.name} = ${value}`)
      await undo()
    }
  }
  expect(good).toEqual([])
}, 60_000)

test('no column of a ledger of revocations can be edited: nothing is revoked under its numbers', async () => {
  const issue = async (role: string) => {
    const issued = await root.post(`pki/issue/${role}`, { common_name: 'a.example', ttl: '1h' })
    return expectServed(issued).string('data.serial_number')
  }
  expectServed(await root.post('pki/roles/plain', { allow_any_name: true, key_type: 'ec' }))
  expectServed(await root.post('pki/revoke', { serial_number: await issue('plain') }))
  const serial = await issue('plain')
  const row = await sql.row('SELECT * FROM pki_ledgers')
  const revoked: string[] = []
  for (const column of await sql.columns('pki_ledgers')) {
    for (const value of others(column, row[column.name] ?? null)) {
      const undo = await sql.edit('pki_ledgers', row.id ?? null, { [column.name]: value })
      if ((await root.post('pki/revoke', { serial_number: serial })).status < 400) {
        revoked.push(`${column.name} = ${value}`)
      }
      await undo()
    }
  }
  expect(revoked).toEqual([])
  expectServed(await root.post('pki/revoke', { serial_number: serial }))
}, 60_000)

test('a sealed table that is not attacked, here, in forge.test.ts or in test/pki/crl, has no row; every other table is known to be open', async () => {
  const sealed = await sealedTables(sql)
  const here = [
    'heads',
    'materials',
    'mounts',
    'pki_authorities',
    'pki_clusters',
    'pki_issuers',
    'pki_keys',
    'pki_ledgers',
    'pki_revocations',
    'pki_roles',
    'policies',
    'tokens',
    'transit_config',
    'transit_keys',
    'transit_versions',
  ]
  const atStart = ['cluster', 'keks', 'system_keys']
  const ofLists = ['pki_crl_numbers', 'pki_crls', 'pki_fingerprints', 'pki_manifests', 'pki_segments']
  const attacked = [...here, ...atStart, ...ofLists]
  const others = sealed.filter((table) => !attacked.includes(table))
  expect(sealed).toEqual(expect.arrayContaining(attacked))
  for (const table of others) expect(await sql.rows(`SELECT * FROM ${table}`), table).toEqual([])
  const open = [
    'acks',
    'job_leases',
    'kek_proofs',
    'outcomes',
    'pki_certificates',
    'pki_tidies',
    'registrations',
    'schema',
    'tallies',
    'usage_counters',
    'version_leaves',
    'versions',
  ]
  expect((await sql.tables()).filter((table) => !sealed.includes(table))).toEqual(open)
})

test('docs/threat-model.md tells of every open table what an edit of it does', async () => {
  const sealed = await sealedTables(sql)
  const told = tableOf('threat-model.md', 'Open tables').flatMap(([tables = '']) => quotedIn(tables))
  expect((await sql.tables()).filter((table) => !sealed.includes(table))).toEqual(told.toSorted())
})
