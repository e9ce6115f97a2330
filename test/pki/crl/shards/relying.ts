import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { shardName, shardsOf } from '../../../../src/engines/pki/crl/shards/shard.ts'
import { readCertificate } from '../../../../src/x509/certificate.ts'
import { extensionOids } from '../../../../src/x509/extension.ts'
import { readCrlDistributionPoints } from '../../../../src/x509/extensions/crldistributionpoints.ts'
import { done, type TestNode } from '../../../api/node.ts'
import type { Reply } from '../../../support/client.ts'
import { runDirectory } from '../../../support/directory.ts'
import { type Answer, createAuthority, dataOf, type TestAuthority, warningsOf } from '../../api/authority.ts'
import { fetchRaw, shown } from '../reading.ts'

export const run = promisify(execFile)

export const template = 'http://crl.example/v1/pki/issuer/{{issuer_id}}/crl/shard/{{ shard }}/der'
export const templated = { crl_distribution_points: template, enable_templating: true }

/** A CA whose certificates are spread over lists, on the node of a test file. */
export interface Spread {
  readonly node: TestNode
  readonly pki: TestAuthority
  readonly root: Answer
}

/** Makes a CA, and spreads its certificates over this many lists. */
export async function spreadOn(node: TestNode, shards: number, settings: Answer = {}): Promise<Spread> {
  const pki = await createAuthority(node)
  const root = await pki.root()
  await pki.role('r')
  await done(pki.post('config/urls', templated))
  expect(warningsOf(await done(pki.post('config/crl', { crl_shards: shards, ...settings })))).toEqual([])
  return { node, pki, root }
}

/** A certificate with its distribution points. */
export interface Issued {
  readonly pem: string
  readonly serial: Buffer
  readonly points: readonly string[]
}

export async function issue(pki: TestAuthority, path = 'issue/r', body: Answer = {}): Promise<Issued> {
  return issuedBy(await done(pki.post(path, { common_name: 'a.example', ttl: '24h', ...body })))
}

/** The certificate of an answer. */
export function issuedBy(reply: Reply): Issued {
  const pem = String(dataOf(reply).certificate)
  const { serial, extensions } = readCertificate(new X509Certificate(pem).raw)
  const found = extensions.find(({ oid }) => oid === extensionOids.crlDistributionPoints)
  return { pem, serial, points: found === undefined ? [] : readCrlDistributionPoints(found.value) }
}

export const hex = (serial: Buffer): string => serial.toString('hex').replace(/^0+/, '')
export const revoke = (pki: TestAuthority, { pem }: Issued) => done(pki.post('revoke', { certificate: pem }))

/** Follows a distribution point to this server. */
export async function follow({ node, pki }: Spread, point: string | undefined): Promise<Buffer> {
  const reply = await fetchRaw(node, `${pki.path}${new URL(point ?? '').pathname.replace('/v1/pki', '')}`)
  expect(reply.status).toBe(200)
  return reply.body
}

export const serialsIn = (list: Buffer): string[] =>
  [...shown(list, 'DER').matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, digits = '']) =>
    digits.toLowerCase().replace(/^0+/, ''),
  )
export const shardAt = async ({ node, pki, root }: Spread, name: string) =>
  (await fetchRaw(node, `${pki.path}/issuer/${String(root.issuer_id)}/crl/shard/${name}/der`)).body
/** The serial numbers on all shards of a count. */
export const allIn = async (of: Spread, shards: number) => {
  const lists = await Promise.all(shardsOf(shards).map((shard) => shardAt(of, shardName(shard))))
  return lists.flatMap(serialsIn).toSorted()
}

export function filesOf(parts: Readonly<Record<string, string | Buffer>>): Record<string, string> {
  const directory = mkdtempSync(join(runDirectory(), 'shard-'))
  return Object.fromEntries(
    Object.entries(parts).map(([name, content]) => {
      writeFileSync(join(directory, name), content)
      return [name, join(directory, name)]
    }),
  )
}

/** openssl's verdict on a certificate by the list of its shard: `good`, `revoked`, or its reason to reject the list. */
export async function opensslSays({ root }: Spread, { pem }: Issued, list: Buffer, more: readonly string[] = []) {
  const { stdout: crl } = await run('openssl', ['crl', '-inform', 'DER', '-in', filesOf({ list }).list ?? ''])
  const { ca = '', leaf = '', list: at = '' } = filesOf({ ca: `${root.certificate}\n`, leaf: `${pem}\n`, list: crl })
  const args = ['verify', '-crl_check', ...more, '-CAfile', ca, '-CRLfile', at, leaf]
  return run('openssl', args).then(
    () => 'good',
    (error: { stderr: string; stdout: string }) => {
      const text = `${error.stderr}${error.stdout}`
      return text.includes('certificate revoked') ? 'revoked' : (/lookup: (.*)/.exec(text)?.[1] ?? text)
    },
  )
}
