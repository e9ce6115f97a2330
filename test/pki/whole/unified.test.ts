import { describe, expect, test, vi } from 'vitest'
import type { TestServer } from '../../support/server.ts'
import { plain, type WholeCa } from './ca.ts'
import { readList } from './relying.ts'
import { useTwoSites } from './twosites.ts'

/** unified_crl_on_existing_paths at two sites of two nodes each. */

const sites = useTwoSites()
const { north, south } = sites
const at = (nodes: readonly TestServer[], index: number): TestServer => nodes[index] as TestServer

/** Every path of a list, of the default issuer and of the same issuer by id. */
const pathsOf = (kind: 'complete' | 'delta', issuer: string): readonly string[] => {
  const [list, certificate] = kind === 'complete' ? ['crl', 'cert/crl'] : ['crl/delta', 'cert/delta-crl']
  const ofIssuer = ['default', issuer].map((reference) => `issuer/${reference}/${list}`)
  return [list, `${list}/pem`, certificate, ...ofIssuer.flatMap((path) => [path, `${path}/der`, `${path}/pem`])]
}

/** The DER of a list, whatever the form of its path. */
async function fetchDer({ url }: TestServer, { path }: WholeCa, rest: string, headers = {}) {
  const reply = await fetch(`${url}/v1/${path}/${rest}`, { headers })
  const body = Buffer.from(await reply.arrayBuffer())
  if (reply.headers.get('content-type') === 'application/pkix-crl') return { reply, der: body }
  const { data } = reply.headers.get('content-type')?.includes('json') ? JSON.parse(body.toString()) : { data: {} }
  const pem: string = data.crl ?? data.certificate ?? body.toString()
  return { reply, der: Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64') }
}

const toPem = (der: Buffer): string =>
  `-----BEGIN X509 CRL-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END X509 CRL-----\n`

/** The list that all paths of its kind serve at a node: each has the same bytes. */
async function shown(node: TestServer, ca: WholeCa, kind: 'complete' | 'delta' = 'complete') {
  const lists = await Promise.all(
    pathsOf(kind, ca.issuerId).map(async (path) => {
      const { reply, der } = await fetchDer(node, ca, path)
      expect(reply.status, path).toBe(200)
      return der
    }),
  )
  const [list = Buffer.alloc(0)] = lists
  for (const [index, der] of lists.entries()) expect(der.equals(list), pathsOf(kind, ca.issuerId)[index]).toBe(true)
  const { serials, number } = await readList(toPem(list), ca.pem)
  return { der: list, serials: serials.map(plain), number }
}

async function expectShown(
  nodes: readonly TestServer[],
  ca: WholeCa,
  serials: readonly string[],
  kind: 'complete' | 'delta' = 'complete',
): Promise<void> {
  for (const node of nodes)
    expect((await shown(node, ca, kind)).serials.toSorted()).toEqual(serials.map(plain).toSorted())
}

async function expectStatuses(nodes: readonly TestServer[], ca: WholeCa, statuses: Readonly<Record<string, string>>) {
  for (const node of nodes)
    for (const [serial, status] of Object.entries(statuses))
      expect(await ca.status(node, 'ocsp', serial), `${serial} at ${node.url}`).toBe(status)
}

const unified = { auto_rebuild: true, unified_crl: true, enable_delta: true }
const asLists = { unified_crl_on_existing_paths: true }
const asBefore = { unified_crl_on_existing_paths: false }

/** A CA with a revocation of each site, on the lists of its site and on the unified ones. */
async function createRevoking() {
  const ca = await sites.createCa(unified)
  const [mine, theirs] = [await ca.issue(at(north, 0)), await ca.issue(at(south, 0))]
  await ca.revoke(at(north, 1), mine)
  await ca.revoke(at(south, 1), theirs)
  for (const nodes of [north, south]) await ca.rotate(at(nodes, 0))
  return { ca, mine, theirs }
}

describe('unified_crl_on_existing_paths', () => {
  test('has every path of every node serve the list of all sites once it is answered, that of its site once it is off, and soon one of a higher number', async () => {
    const { ca, mine, theirs } = await createRevoking()
    await expectShown(north, ca, [mine])
    await expectShown(south, ca, [theirs])

    await ca.post(at(north, 0), 'config/crl', asLists)
    await expectShown(sites.all, ca, [mine, theirs])
    for (const node of sites.all) {
      const { der } = await fetchDer(node, ca, 'unified-crl')
      expect((await shown(node, ca)).der.equals(der)).toBe(true)
    }

    const { number } = await shown(at(north, 0), ca)
    await ca.post(at(south, 1), 'config/crl', asBefore)
    await expectShown(north, ca, [mine])
    await expectShown(south, ca, [theirs])
    for (const node of south) expect((await shown(node, ca)).number).toBeGreaterThan(number)
    // By the job that runs every minute.
    const patience = { timeout: 150_000, interval: 2000 }
    for (const node of north) {
      await vi.waitFor(async () => expect((await shown(node, ca)).number).toBeGreaterThan(number), patience)
    }
    await expectShown(north, ca, [mine])
  }, 240_000)

  test('puts later revocations of both sites on the deltas and lists of each, whichever site builds them', async () => {
    const { ca, mine, theirs } = await createRevoking()
    await ca.post(at(south, 0), 'config/crl', asLists)
    const [late, later] = [await ca.issue(at(south, 0)), await ca.issue(at(north, 0))]
    await ca.revoke(at(south, 1), late)
    await ca.revoke(at(north, 1), later)
    await expectShown(sites.all, ca, [], 'delta')
    await ca.rotate(at(north, 0), 'rotate-delta')
    await expectShown(sites.all, ca, [late, later], 'delta')
    await expectShown(sites.all, ca, [mine, theirs])
    await ca.rotate(at(south, 0))
    await expectShown(sites.all, ca, [mine, theirs, late, later])
    await expectShown(sites.all, ca, [], 'delta')

    await ca.post(at(north, 1), 'config/crl', asBefore)
    for (const [nodes, own] of [
      [north, [mine, later]],
      [south, [theirs, late]],
    ] as const) {
      await ca.rotate(at(nodes, 0))
      await expectShown(nodes, ca, own)
    }
  }, 60_000)

  test('has the ocsp of each node answer for all sites, also of what was revoked a moment ago', async () => {
    const { ca, mine, theirs } = await createRevoking()
    const [late, living] = [await ca.issue(at(south, 0)), await ca.issue(at(north, 0))]
    const always = { [living]: 'good' }
    await expectStatuses(north, ca, { ...always, [mine]: 'revoked', [theirs]: 'good', [late]: 'good' })
    await expectStatuses(south, ca, { ...always, [mine]: 'good', [theirs]: 'revoked', [late]: 'good' })
    await ca.post(at(north, 1), 'config/crl', asLists)
    await expectStatuses(sites.all, ca, { ...always, [mine]: 'revoked', [theirs]: 'revoked', [late]: 'good' })
    await ca.revoke(at(south, 1), late)
    await expectStatuses(sites.all, ca, { ...always, [late]: 'revoked' })
    await ca.post(at(south, 0), 'config/crl', asBefore)
    await expectStatuses(north, ca, { ...always, [mine]: 'revoked', [theirs]: 'good', [late]: 'good' })
    await expectStatuses(south, ca, { ...always, [mine]: 'good', [theirs]: 'revoked', [late]: 'revoked' })
  }, 60_000)

  test('lets no cache keep the list of the other kind', async () => {
    const { ca } = await createRevoking()
    for (const settings of [asLists, asBefore]) {
      const before = await fetchDer(at(south, 1), ca, 'crl')
      const etag = before.reply.headers.get('etag') ?? ''
      const ask = () => fetchDer(at(south, 1), ca, 'crl', { 'If-None-Match': etag })
      expect((await ask()).reply.status).toBe(304)
      await ca.post(at(north, 0), 'config/crl', settings)
      const after = await ask()
      expect(after.reply.status).toBe(200)
      expect(after.der.equals(before.der)).toBe(false)
    }
  }, 60_000)

  test('is refused without unified_crl, and both can be switched on and off together', async () => {
    const ca = await sites.createCa({ auto_rebuild: true })
    const refused = await at(north, 0).client().post(`${ca.path}/config/crl`, asLists)
    expect(refused.status).toBe(400)
    const [mine, theirs] = [await ca.issue(at(north, 0)), await ca.issue(at(south, 0))]
    await ca.revoke(at(north, 1), mine)
    await ca.revoke(at(south, 1), theirs)
    for (const nodes of [north, south]) await ca.rotate(at(nodes, 0))
    const both = { unified_crl: true, unified_crl_on_existing_paths: true }
    await ca.post(at(south, 0), 'config/crl', both)
    const { serials } = await ca.list(at(north, 1), 'crl/pem')
    expect(serials.toSorted()).toEqual([mine, theirs].map(plain).toSorted())
    await ca.post(at(north, 0), 'config/crl', { unified_crl: false, unified_crl_on_existing_paths: false })
    expect((await ca.list(at(north, 1), 'crl/pem')).serials).toEqual([plain(mine)])
    expect((await ca.list(at(south, 1), 'crl/pem')).serials).toEqual([plain(theirs)])
    expect(await at(south, 1).client('').get(`${ca.path}/unified-crl/pem`)).toMatchObject({ status: 204 })
  }, 60_000)
})
