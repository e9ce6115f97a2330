import { asn1, contextAround, write, writeNumber } from '../../src/crypto/der.ts'
import { hashOf } from '../../src/crypto/hashes.ts'
import { type Extension, writeExtension } from '../../src/x509/extension.ts'
import { issuerDigests } from '../../src/x509/ocsp/certid.ts'
import { nonceOid } from '../../src/x509/ocsp/request.ts'

/** OCSP requests as clients write them, and malformed ones. */

export const ocspHashes = ['sha1', 'sha2-256', 'sha2-384', 'sha2-512'] as const
export type OcspHash = (typeof ocspHashes)[number] | 'sha2-224'

export interface Asking {
  readonly issuer: { readonly subject: Buffer; readonly spki: Buffer }
  /** Magnitude. */
  readonly serial: Buffer
  readonly hash?: OcspHash
  /** Whether the hash algorithm has a NULL behind it. */
  readonly withNull?: boolean
  readonly nonce?: Buffer | undefined
  readonly extensions?: readonly Extension[]
  /** Further CertIDs. */
  readonly more?: readonly Buffer[]
}

export function writeCertId({ issuer, serial, hash: name = 'sha1', withNull = true }: Asking): Buffer {
  const hash = hashOf(name)
  const identifier = hash.digestInfo.subarray(2, -2)
  const digests = issuerDigests(hash, issuer)
  return write(
    asn1.sequence,
    withNull ? identifier : write(asn1.sequence, identifier.subarray(2, -2)),
    write(asn1.octetString, digests.subarray(0, hash.bytes)),
    write(asn1.octetString, digests.subarray(hash.bytes)),
    writeNumber(serial),
  )
}

export const nonceExtension = (nonce: Buffer): Extension => ({
  oid: nonceOid,
  critical: false,
  value: write(asn1.octetString, nonce),
})

export function writeOcspRequest(asking: Asking): Buffer {
  const { nonce, extensions = [], more = [] } = asking
  const requests = [writeCertId(asking), ...more].map((certId) => write(asn1.sequence, certId))
  const list = [...(nonce === undefined ? [] : [nonceExtension(nonce)]), ...extensions].map(writeExtension)
  const around = list.length === 0 ? [] : [write(contextAround(2), write(asn1.sequence, ...list))]
  return write(asn1.sequence, write(asn1.sequence, write(asn1.sequence, ...requests), ...around))
}
