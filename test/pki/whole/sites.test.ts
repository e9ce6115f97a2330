import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectServed, until } from '../../attack/nodes.ts'
import type { TestServer } from '../../support/server.ts'
import { dataOf } from '../api/authority.ts'
import { plain, type WholeCa } from './ca.ts'
import { useTwoSites } from './twosites.ts'

const { north, south, createCa } = useTwoSites()
let ca: WholeCa
beforeAll(async () => {
  ca = await createCa()
})

const nodeOf = (nodes: readonly TestServer[], index: number): TestServer => nodes[index] as TestServer

describe('two sites', { shuffle: false }, () => {
  test('each site has certificates and URLs of its own', async () => {
    const [mine, theirs] = [await ca.issue(nodeOf(north, 1)), await ca.issue(nodeOf(south, 0))]
    const serials = (node: TestServer) => ca.keys(node, 'certs')
    expect(await serials(nodeOf(north, 0))).toContain(mine)
    expect(await serials(nodeOf(north, 0))).not.toContain(theirs)
    expect(await serials(nodeOf(south, 1))).toContain(theirs)
    expect(await serials(nodeOf(south, 1))).not.toContain(mine)
    await ca.post(nodeOf(north, 0), 'config/cluster', { path: 'http://north.example/v1/pki' })
    await ca.post(nodeOf(south, 0), 'config/cluster', { path: 'http://south.example/v1/pki' })
    const path = async (node: TestServer) =>
      dataOf(expectServed(await node.client().get(`${ca.path}/config/cluster`))).path
    expect(await path(nodeOf(north, 1))).toBe('http://north.example/v1/pki')
    expect(await path(nodeOf(south, 1))).toBe('http://south.example/v1/pki')
  }, 60_000)

  test('a revocation is in the lists and answers of its own site, at once and on every node', async () => {
    const [mine, theirs] = [await ca.issue(nodeOf(north, 0)), await ca.issue(nodeOf(south, 0))]
    for (const node of [...north, ...south]) await ca.status(node, 'ocsp', mine)
    await ca.revoke(nodeOf(north, 1), mine)
    await ca.revoke(nodeOf(south, 1), theirs)
    for (const node of north) {
      expect(await ca.status(node, 'ocsp', mine)).toBe('revoked')
      const { serials } = await ca.list(node, 'crl/pem')
      expect(serials).toContain(plain(mine))
      expect(serials).not.toContain(plain(theirs))
    }
    for (const node of south) {
      expect(await ca.status(node, 'ocsp', theirs)).toBe('revoked')
      const { serials } = await ca.list(node, 'crl/pem')
      expect(serials).toContain(plain(theirs))
      expect(serials).not.toContain(plain(mine))
    }
  }, 60_000)

  test('a site does not know revocations of another, until there are unified lists', async () => {
    const serial = await ca.issue(nodeOf(north, 0))
    const refused = await nodeOf(south, 0).client().post(`${ca.path}/revoke`, { serial_number: serial })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('not found')
    await ca.post(nodeOf(south, 0), 'config/crl', {
      auto_rebuild: true,
      unified_crl: true,
      cross_cluster_revocation: true,
    })
    await ca.revoke(nodeOf(north, 1), serial)
    await ca.rotate(nodeOf(south, 1))
    for (const node of [...north, ...south]) {
      expect(await ca.status(node, 'unified-ocsp', serial)).toBe('revoked')
      expect((await ca.list(node, 'unified-crl/pem')).serials).toContain(plain(serial))
    }
    expect((await ca.list(nodeOf(south, 0), 'crl/pem')).serials).not.toContain(plain(serial))
    // It is known to be revoked elsewhere: no site is asked.
    const again = await ca.revoke(nodeOf(south, 0), serial)
    expect(again.revocation_time).toBeGreaterThan(0)
    expect(await ca.keys(nodeOf(south, 1), 'certs/unified-revoked')).toContain(serial)
  }, 120_000)

  test('numbers of all lists of an issuer, local and unified, of both sites, never repeat', async () => {
    const numbers: bigint[] = []
    for (const node of [...north, ...south]) {
      await ca.rotate(node)
      for (const path of ['crl/pem', 'unified-crl/pem']) numbers.push((await ca.list(node, path)).number)
    }
    const locals = numbers.filter((_, index) => index % 2 === 0)
    expect(new Set(locals).size).toBe(locals.length)
    for (const [index, number] of numbers.entries()) {
      if (index >= 2) expect(number).toBeGreaterThanOrEqual(numbers[index - 2] as bigint)
    }
    expect(new Set(numbers).size).toBe(numbers.length)
  }, 60_000)

  test('a site passes a revocation of an unknown certificate on to the site that has it', async () => {
    const serial = await ca.issue(nodeOf(north, 0))
    const asked = await ca.revoke(nodeOf(south, 1), serial)
    expect(asked.state).toBe('pending')
    expect(await ca.keys(nodeOf(south, 0), 'certs/revocation-queue')).toContain(serial)
    await until(async () => {
      await delay(1000)
      return (await ca.status(nodeOf(north, 1), 'ocsp', serial)) === 'revoked'
    })
    expect(await ca.keys(nodeOf(north, 0), 'certs/revoked')).toContain(serial)
  }, 180_000)
})
