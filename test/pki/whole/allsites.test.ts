import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { expectServed } from '../../attack/nodes.ts'
import type { TestServer } from '../../support/server.ts'
import { dataOf } from '../api/authority.ts'
import { plain, type WholeCa } from './ca.ts'
import { useTwoSites } from './twosites.ts'

/** Tidying of data that sites share, at two sites of two nodes each. */

const sites = useTwoSites()
const { north, south } = sites
const at = (nodes: readonly TestServer[], index: number): TestServer => nodes[index] as TestServer

const joined = { auto_rebuild: true, unified_crl: true, cross_cluster_revocation: true }

/** Milliseconds between an entry that is old enough to be removed and one that is not. */
const apart = 12_000
/**
 * A safety buffer that entries from `since` have passed, and those from `apart` later have not.
 * @param since milliseconds
 */
const bufferSince = (since: number): number => Math.floor((Date.now() - since) / 1000) - 3

describe('tidy_revocation_queue', () => {
  /** Asks the other sites to revoke a certificate that none of them has. */
  async function ask(node: TestServer, ca: WholeCa): Promise<string> {
    const digits = `5${randomBytes(15).toString('hex').slice(1)}`.match(/../g) ?? []
    const serial = digits.join(':')
    expect((await ca.revoke(node, serial)).state).toBe('pending')
    return serial
  }
  const queues = (ca: WholeCa) => Promise.all(sites.all.map((node) => ca.keys(node, 'certs/revocation-queue')))

  test('at one site removes requests of both that are older than their buffer, at every node, and leaves the younger ones', async () => {
    const ca = await sites.createCa(joined)
    const old = [await ask(at(north, 0), ca), await ask(at(south, 0), ca)]
    const since = Date.now()
    const tidy = (node: TestServer, more = {}) => ca.tidy(node, { tidy_revocation_queue: true, ...more })
    expect(await tidy(at(south, 1))).toMatchObject({ state: 'Finished', revocation_queue_deleted_count: 0 })
    await delay(apart)
    const young = [await ask(at(north, 1), ca), await ask(at(south, 1), ca)]
    for (const queue of await queues(ca)) expect(queue).toEqual([...old, ...young].toSorted())
    const status = await tidy(at(north, 1), { revocation_queue_safety_buffer: bufferSince(since) })
    expect(status).toMatchObject({ state: 'Finished', error: null, revocation_queue_deleted_count: 2 })
    for (const queue of await queues(ca)) expect(queue).toEqual(young.toSorted())
    const shown = dataOf(expectServed(await at(south, 0).client().list(`${ca.path}/certs/revocation-queue`)))
    expect(shown.key_info).toEqual({
      [young[0] ?? '']: { requesting_cluster: 'north' },
      [young[1] ?? '']: { requesting_cluster: 'south' },
    })

    // A removed request can be made again, and is then young.
    expect((await ca.revoke(at(south, 0), old[1] ?? '')).state).toBe('pending')
    await tidy(at(south, 0), { revocation_queue_safety_buffer: bufferSince(since) })
    for (const queue of await queues(ca)) expect(queue).toEqual([...young, old[1]].toSorted())
    await delay(1200)
    await tidy(at(south, 1), { revocation_queue_safety_buffer: 1 })
    for (const queue of await queues(ca)) expect(queue).toEqual([])
  }, 90_000)
})

describe('tidy_cross_cluster_revoked_certs', () => {
  /** Issues and revokes at once. @returns the serial number, and the end in milliseconds */
  async function revoke(node: TestServer, ca: WholeCa, seconds: number) {
    const leaf = await ca.leaf(node, `${seconds}s`)
    await ca.revoke(node, leaf.serial)
    return leaf
  }
  const past = async (end: number): Promise<void> => void (await delay(Math.max(0, end + 1500 - Date.now())))
  const seen = (ca: WholeCa, path: string, nodes = sites.all) => Promise.all(nodes.map((node) => ca.keys(node, path)))
  const onList = async (node: TestServer, ca: WholeCa, path: string) => (await ca.list(node, path)).serials.toSorted()

  test('removes what another site has revoked once its end is past the buffer and lists have carried it, and nothing else', async () => {
    const ca = await sites.createCa(joined)
    const old = await revoke(at(south, 0), ca, 10)
    const own = await revoke(at(north, 0), ca, 10)
    const young = await revoke(at(south, 1), ca, 10 + apart / 1000)
    const living = await revoke(at(south, 0), ca, 86_400)
    const all = [old, own, young, living].map(({ serial }) => serial).toSorted()
    const kept = [own, young, living].map(({ serial }) => serial).toSorted()
    const tidy = async (node: TestServer, buffer: number) => {
      const order = { tidy_cross_cluster_revoked_certs: true, safety_buffer: buffer }
      const { state, error, revoked_cert_deleted_count: ours, ...status } = await ca.tidy(node, order)
      expect([state, error, ours]).toEqual(['Finished', null, 0])
      return status.cross_revoked_cert_deleted_count
    }
    // Every published list, of a site or of all, was made before the end.
    for (const nodes of [north, south]) await ca.rotate(at(nodes, 0))
    await past(old.end)
    expect(await tidy(at(north, 0), 1)).toBe(0)
    for (const keys of await seen(ca, 'certs/unified-revoked')) expect(keys).toEqual(all)
    for (const node of sites.all) expect(await ca.status(node, 'unified-ocsp', old.serial)).toBe('revoked')

    await past(young.end)
    for (const nodes of [south, north]) await ca.rotate(at(nodes, 1))
    expect(await onList(at(north, 0), ca, 'unified-crl/pem')).toEqual(all.map(plain).toSorted())
    expect(await tidy(at(north, 1), bufferSince(old.end))).toBe(1)
    for (const keys of await seen(ca, 'certs/unified-revoked')) expect(keys).toEqual(kept)
    for (const keys of await seen(ca, 'certs/revoked', [...south]))
      expect(keys).toEqual([young, living].map(({ serial }) => serial).toSorted())
    for (const keys of await seen(ca, 'certs/revoked', [...north])) expect(keys).toEqual([own.serial])
    for (const nodes of [north, south]) await ca.rotate(at(nodes, 0))
    for (const node of sites.all) expect(await onList(node, ca, 'unified-crl/pem')).toEqual(kept.map(plain).toSorted())
    for (const node of south)
      expect(await onList(node, ca, 'crl/pem')).toEqual([young, living].map(({ serial }) => plain(serial)).toSorted())
    for (const node of sites.all)
      for (const { serial } of [own, young, living])
        expect(await ca.status(node, 'unified-ocsp', serial)).toBe('revoked')

    // The other way round: the other site removes this site's ended revocation.
    expect(await tidy(at(south, 0), 1)).toBe(1)
    for (const keys of await seen(ca, 'certs/unified-revoked'))
      expect(keys).toEqual([young, living].map(({ serial }) => serial).toSorted())
  }, 90_000)
})
