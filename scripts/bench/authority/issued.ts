import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readPem } from '../../../src/crypto/pem.ts'
import { crlIssuerOf } from '../../../src/engines/pki/authority/crlissuer.ts'
import { type Certificate, readCertificate } from '../../../src/x509/certificate.ts'
import { multiplyRevocations } from '../multiply.ts'
import type { StrongroomNode } from '../node.ts'

const clients = 16

/** Issues certificates of the mount `pki` by its role `stored`. @returns their serial numbers, with colons */
export async function issueMany(node: StrongroomNode, count: number): Promise<string[]> {
  const serials: string[] = []
  let asked = 0
  const client = async (): Promise<void> => {
    while (asked++ < count) {
      const { data } = await node.call('POST', 'pki/issue/stored', { common_name: `host${asked}.example.com` })
      serials.push((data as { serial_number: string }).serial_number)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return serials
}

/** Revokes certificates of the mount `pki`, as many at a time as there are clients. */
export async function revokeMany(node: StrongroomNode, serials: readonly string[]): Promise<void> {
  const left = serials.values()
  const client = async (): Promise<void> => {
    for (const serial_number of left) await node.call('POST', 'pki/revoke', { serial_number })
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** The authority of the mount `pki`. */
export async function issuerOf(node: StrongroomNode): Promise<Certificate> {
  const { data } = await node.call('GET', 'pki/cert/ca')
  const [der] = readPem((data as { certificate: string }).certificate, ['CERTIFICATE'])
  if (der === undefined) throw new Error('the authority has no certificate')
  return readCertificate(der)
}

/**
 * Makes so many revocations of the mount `pki`, in which nothing was revoked yet, as if lists had taken them in, and a
 * list of them.
 */
export async function fillRevocations(node: StrongroomNode, count: number): Promise<void> {
  const crlIssuer = crlIssuerOf(await issuerOf(node))
  const script = join(import.meta.dirname, 'revoked.ts')
  await promisify(execFile)(process.execPath, [script, node.configuration, crlIssuer, String(count)])
  await multiplyRevocations(node.database, { mount: await mountOf(node), crlIssuer, count })
  await node.call('GET', 'pki/crl/rotate')
}

/** The uuid of the mount `pki`. */
async function mountOf(node: StrongroomNode): Promise<string> {
  const { data } = await node.call('GET', 'sys/mounts')
  return (data as Record<string, { uuid: string }>)['pki/']?.uuid ?? ''
}
