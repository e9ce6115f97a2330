import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writePem } from '../../../src/crypto/pem.ts'
import { contentOf } from '../../../src/engines/pki/crl/record.ts'
import { mostEntries } from '../../../src/engines/pki/crl/segments.ts'
import type { SegmentName } from '../../../src/engines/pki/crl/tables.ts'
import { type Cluster, useCluster } from '../../keys/support.ts'
import { runDirectory } from '../../support/directory.ts'
import { type BuilderNode, type Ca, createCa, createSet, nodeAt, revoke, targetOf } from './world.ts'

let cluster: Cluster
useCluster('crllarge', async (begun) => {
  cluster = begun
  await createSet(begun.place.database)
})

/** Segments of `count` revocations, without the revocations themselves. */
async function fill({ database, builder }: BuilderNode, { crlIssuer }: Ca, count: number): Promise<void> {
  const [notAfter, revokedAt] = [Date.now() + 1e9, Date.now()]
  const names: SegmentName[] = []
  for (let from = 1; from <= count; from += mostEntries) {
    const rows = Array.from({ length: mostEntries }, (_, index) => {
      const serial = `41${(from + index).toString(16).padStart(38, '0')}`
      return {
        ...sealed,
        site: 'default',
        serial,
        issuer: '',
        notAfter,
        revokedAt,
        crlIssuer,
        seq: from + index,
        reason: null,
      }
    })
    const content = contentOf(rows)
    names.push(await database.transaction((tx) => builder.segments.insert(tx, crlIssuer, 'default', content)))
  }
  const sites = { default: { absorbed: count, segments: names } }
  await builder.manifests.change(crlIssuer, async () => ({ after: { sites }, result: undefined }))
}

const sealed = { id: '', namespace: '', mount: 'm', rev: 1, epoch: 1 }

/** OpenSSL's text of a list whose signature it has verified. */
function shown(crl: Buffer, { certificate }: Ca): string {
  const directory = mkdtempSync(join(runDirectory(), 'crl-'))
  const [list, ca] = [join(directory, 'list.der'), join(directory, 'ca.pem')]
  writeFileSync(list, crl)
  writeFileSync(ca, writePem('CERTIFICATE', certificate.der))
  const args = ['crl', '-inform', 'DER', '-in', list, '-CAfile', ca, '-noout', '-text']
  return execFileSync('openssl', args, { stdio: 'pipe', maxBuffer: 64 * 1024 * 1024 }).toString()
}

test('OpenSSL verifies a list of 20,000 entries and its delta, and finds every entry', async () => {
  const node = nodeAt(cluster.place.database)
  const ca = await createCa(cluster)
  const mount = randomUUID()
  await fill(node, ca, 20_000)
  const { complete } = await node.builder.build(targetOf(ca, mount))
  const text = shown(await node.whole(complete), ca)
  expect(text.match(/Serial Number: 41/g)).toHaveLength(20_000)
  expect(text).toMatch(/X509v3 CRL Number: \n\s+1\n/)
  const rows = await revoke(node.database, ca.crlIssuer, 3, { reason: 1 })
  const { delta } = await node.builder.build(targetOf(ca, mount, { kinds: 'delta' }))
  const changes = shown(await node.whole(delta), ca)
  for (const { serial } of rows) expect(changes).toContain(serial.toUpperCase())
  expect(changes).toMatch(/X509v3 Delta CRL Indicator: critical/)
  expect(changes).toContain('Key Compromise')
  expect(delta.parts).toHaveLength(1)
  expect(await node.listed.find(ca.crlIssuer, `41${(20_000).toString(16).padStart(38, '0')}`)).toBeDefined()
})
