import { beforeAll, expect, test } from 'vitest'
import { useDoomed } from '../../attack/deaths/doomed.ts'
import { expectServed } from '../../attack/nodes.ts'
import type { Client, Reply } from '../../support/client.ts'
import { type Answer, certificateOf, dataOf } from '../api/authority.ts'
import { bundleOf } from './outside.ts'

/** kill -9 at every COMMIT of an authority's changes: afterwards each is done, or not begun. */

const doomed = useDoomed()
const moments = ['before', 'after'] as const
const year = '87600h'

let mounts = 0
/** A fresh mount with a role for P-256, made by the node that survives. */
async function mount(): Promise<string> {
  const path = `deaths-${mounts++}`
  const { root } = doomed
  expectServed(await root.post(`sys/mounts/${path}`, { type: 'pki', config: { max_lease_ttl: year } }))
  expectServed(await root.post(`${path}/roles/r`, { allow_any_name: true, key_type: 'ec', generate_lease: true }))
  return path
}

const post = async (path: string, body = {}): Promise<Answer> =>
  dataOf(expectServed(await doomed.root.post(path, body)))
const keysOf = async (path: string): Promise<readonly string[]> => {
  const reply = await doomed.root.list(path)
  return reply.status === 404 ? [] : (dataOf(expectServed(reply)).keys as string[])
}
const generateRoot = (path: string, body = {}) =>
  post(`${path}/root/generate/internal`, { common_name: 'R', key_type: 'ec', ttl: year, ...body })

/** Nothing is half-written, by the tables and by the authority's answers. */
async function expectWhole(path: string): Promise<void> {
  const { sql, root } = doomed
  const none = async (text: string): Promise<void> => expect(await sql.rows(text), text).toEqual([])
  await none(`SELECT i.id FROM pki_issuers i LEFT JOIN pki_keys k ON k.id = i.key_id
    WHERE i.key_id <> '' AND k.id IS NULL`)
  await none(`SELECT k.id FROM pki_keys k LEFT JOIN materials m ON m.id = k.material AND m.owner = k.id
    WHERE m.id IS NULL OR m.state <> 'active'`)
  await none(`SELECT m.id FROM materials m JOIN mounts o ON o.id = m.mount AND o.type = 'pki'
    LEFT JOIN pki_keys k ON k.material = m.id WHERE k.id IS NULL AND m.state = 'active'`)
  for (const id of await keysOf(`${path}/issuers`)) {
    const { key_id: key } = dataOf(expectServed(await root.get(`${path}/issuer/${id}`)))
    if (key === '') continue
    const leaf = await post(`${path}/issuer/${id}/issue/r`, { common_name: 'a.example', ttl: '1h' })
    const issuer = dataOf(expectServed(await root.get(`${path}/issuer/${id}/json`)))
    expect(certificateOf(leaf).verify(certificateOf(issuer).publicKey)).toBe(true)
  }
}

beforeAll(() => mount(), 60_000)

test.each(moments)(
  'killed %s the COMMIT of a root: key, issuer and certificate are there, or none of them',
  async (when) => {
    const done = when === 'after' ? 1 : 0
    for (const type of ['internal', 'exported']) {
      const path = await mount()
      const wanted = { common_name: 'R', key_type: 'ec', ttl: year, issuer_name: 'one', key_name: 'one' }
      const generate = (node: Client): Promise<Reply> => node.post(`${path}/root/generate/${type}`, wanted)
      await doomed.die(when, generate)
      for (const list of ['issuers', 'keys', 'certs']) expect(await keysOf(`${path}/${list}`), list).toHaveLength(done)
      await expectWhole(path)
      expect((await generate(doomed.root)).status).toBe(done ? 400 : 200)
    }
  },
  120_000,
)

test.each(moments)(
  'killed %s a COMMIT of a root whose key lives in the HSM alone: no object is left without its row',
  async (when) => {
    for (const nth of [1, 2]) {
      const path = await mount()
      const wanted = { common_name: 'R', key_type: 'ec', ttl: year, residence: 'token' }
      await doomed.die(when, (node) => node.post(`${path}/root/generate/internal`, wanted), nth)
      const done = when === 'after' && nth === 2 ? 1 : 0
      for (const list of ['issuers', 'keys', 'certs']) expect(await keysOf(`${path}/${list}`), list).toHaveLength(done)
      await expectWhole(path)
    }
  },
  120_000,
)

test.each(moments)(
  'killed %s the COMMIT of an import: all of the bundle is there, or nothing',
  async (when) => {
    const path = await mount()
    const made = [bundleOf('A'), bundleOf('B'), bundleOf('C')]
    const pem_bundle = made.map(({ bundle }) => bundle).join('')
    await doomed.die(when, (node) => node.post(`${path}/issuers/import/bundle`, { pem_bundle }))
    const done = when === 'after' ? 3 : 0
    for (const list of ['issuers', 'keys']) expect(await keysOf(`${path}/${list}`), list).toHaveLength(done)
    await expectWhole(path)
    const again = await post(`${path}/issuers/import/bundle`, { pem_bundle })
    expect([again.imported_issuers, again.existing_keys].map((ids) => (ids as string[] | null)?.length ?? 0)).toEqual([
      3 - done,
      done,
    ])
    await expectWhole(path)

    // The key of an issuer that was imported without it.
    const late = bundleOf('Late')
    await post(`${path}/issuers/import/cert`, { pem_bundle: late.certificate })
    await doomed.die(when, (node) => node.post(`${path}/keys/import`, { pem_bundle: late.privateKey }))
    const ids = await keysOf(`${path}/issuers`)
    const infos = await Promise.all(ids.map(async (id) => dataOf(await doomed.root.get(`${path}/issuer/${id}`)).key_id))
    expect(infos.filter((key) => key === '')).toHaveLength(when === 'after' ? 0 : 1)
    expect(await keysOf(`${path}/keys`)).toHaveLength(when === 'after' ? 4 : 3)
    await expectWhole(path)
  },
  120_000,
)

test.each(moments)(
  'killed %s the COMMIT of a certificate with a lease: both are there, or neither',
  async (when) => {
    const path = await mount()
    await generateRoot(path)
    await doomed.die(when, (node) => node.post(`${path}/issue/r`, { common_name: 'a.example', ttl: '1h' }))
    const done = when === 'after' ? 1 : 0
    expect(await keysOf(`${path}/certs`)).toHaveLength(1 + done)
    const leases = await doomed.sql.rows('SELECT payload FROM leases WHERE lease_id LIKE ?', [`${path}/%`])
    expect(leases).toHaveLength(done)
    const serials = (await keysOf(`${path}/certs`)).map((serial) => serial.replaceAll(/[:-]/g, ''))
    for (const { payload } of leases) expect(serials).toContain(JSON.parse(String(payload)).serial)
    // Also a certificate without a lease: signed by root/sign-intermediate.
    const { csr } = await post(`${path}/intermediate/generate/internal`, { common_name: 'S', key_type: 'ec' })
    await doomed.die(when, (node) => node.post(`${path}/root/sign-intermediate`, { csr, ttl: '1h' }))
    expect(await keysOf(`${path}/certs`)).toHaveLength(1 + 2 * done)
    await expectWhole(path)
  },
  120_000,
)

test.each(moments)(
  'killed %s the COMMIT of the deletion of everything: all is gone, or nothing',
  async (when) => {
    const path = await mount()
    for (const name of ['one', 'two', 'three']) await generateRoot(path, { issuer_name: name })
    await doomed.die(when, (node) => node.delete(`${path}/root`))
    const left = when === 'after' ? 0 : 3
    for (const list of ['issuers', 'keys']) expect(await keysOf(`${path}/${list}`), list).toHaveLength(left)
    const { default: issuer } = dataOf(await doomed.root.get(`${path}/config/issuers`))
    expect(issuer === '').toBe(when === 'after')
    await expectWhole(path)
    await generateRoot(path)
  },
  120_000,
)

test.each(moments)(
  'killed %s the COMMIT of a renaming, a deletion, a setting: it was done, or it was not',
  async (when) => {
    const path = await mount()
    const { issuer_id: id, key_id: key } = await generateRoot(path, { issuer_name: 'old', key_name: 'old' })
    const done = when === 'after'
    const read = async (rest: string): Promise<Answer> => dataOf(expectServed(await doomed.root.get(`${path}/${rest}`)))
    await doomed.die(when, (node) => node.post(`${path}/key/${key}`, { key_name: 'new' }))
    expect((await read(`key/${key}`)).key_name).toBe(done ? 'new' : 'old')
    await doomed.die(when, (node) => node.post(`${path}/issuer/${id}`, { issuer_name: 'new' }))
    expect((await read(`issuer/${id}`)).issuer_name).toBe(done ? 'new' : 'old')
    await doomed.die(when, (node) => node.post(`${path}/config/urls`, { ocsp_servers: 'http://a.example' }))
    expect((await doomed.root.get(`${path}/config/urls`)).status).toBe(done ? 200 : 404)
    await doomed.die(when, (node) => node.delete(`${path}/issuer/${id}`))
    expect(await keysOf(`${path}/issuers`)).toHaveLength(done ? 0 : 1)
    expect((await read('config/issuers')).default).toBe(done ? '' : id)
    await expectWhole(path)
    if (!done) return
    await doomed.die(when, (node) => node.delete(`${path}/key/${key}`))
    expect(await keysOf(`${path}/keys`)).toEqual([])
    await expectWhole(path)
  },
  120_000,
)
