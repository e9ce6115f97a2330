import { asn1, context, contextAround, write } from '../../crypto/der.ts'
import { writeOid } from '../../crypto/oid.ts'
import { writeExtension } from '../extension.ts'
import { writeGeneralizedTime } from '../time.ts'
import { nonceOid } from './request.ts'

/** Answers of an OCSP responder (RFC 6960 section 4.2): unsigned errors, and basic responses about one certificate. */

const noUnusedBits = Buffer.alloc(1)
const basicResponse = writeOid('1.3.6.1.5.5.7.48.1.1')

const failure = (status: number): Buffer => write(asn1.sequence, write(asn1.enumerated, Buffer.from([status])))

/** Answers without a signature (RFC 6960 section 4.2.1). */
export const ocspFailures = {
  malformedRequest: failure(1),
  internalError: failure(2),
  tryLater: failure(3),
  unauthorized: failure(6),
} as const

/** A revocation in milliseconds since 1970; a reason of undefined or 0 is left out. */
export interface RevokedStatus {
  readonly revokedAt: number
  /** CRLReason (RFC 5280 section 5.3.1). */
  readonly reason?: number | undefined
}
export type CertStatus = 'good' | 'unknown' | RevokedStatus

/** Times in milliseconds since 1970, rounded down to a second. */
export interface ResponseData {
  /** Name of the signer, DER. */
  readonly responder: Buffer
  /** Copied from the request, DER. */
  readonly certId: Buffer
  readonly status: CertStatus
  readonly producedAt: number
  readonly thisUpdate: number
  /** Absent where newer information is available at any time. */
  readonly nextUpdate: number | undefined
  readonly nonce: Buffer | undefined
}

const good = write(context(0))
const unknown = write(context(2))

function writeStatus(status: CertStatus): Buffer {
  if (status === 'good') return good
  if (status === 'unknown') return unknown
  const time = writeGeneralizedTime(status.revokedAt)
  if (!status.reason) return write(contextAround(1), time)
  return write(contextAround(1), time, write(contextAround(0), write(asn1.enumerated, Buffer.from([status.reason]))))
}

/** The bytes that are signed. */
export function writeResponseData(data: ResponseData): Buffer {
  const { responder, certId, nextUpdate, nonce } = data
  const single = [certId, writeStatus(data.status), writeGeneralizedTime(data.thisUpdate)]
  if (nextUpdate !== undefined) single.push(write(contextAround(0), writeGeneralizedTime(nextUpdate)))
  const parts = [
    write(contextAround(1), responder),
    writeGeneralizedTime(data.producedAt),
    write(asn1.sequence, write(asn1.sequence, ...single)),
  ]
  if (nonce !== undefined) {
    const extension = writeExtension({ oid: nonceOid, critical: false, value: write(asn1.octetString, nonce) })
    parts.push(write(contextAround(1), write(asn1.sequence, extension)))
  }
  return write(asn1.sequence, ...parts)
}

/**
 * A successful answer, without certificates: the signer is the issuer of the certificate.
 * @param algorithm AlgorithmIdentifier, DER
 * @param signature over `data`
 */
export function writeOcspResponse(data: Buffer, algorithm: Buffer, signature: Uint8Array): Buffer {
  const basic = write(asn1.sequence, data, algorithm, write(asn1.bitString, noUnusedBits, signature))
  const bytes = write(asn1.sequence, basicResponse, write(asn1.octetString, basic))
  return write(asn1.sequence, write(asn1.enumerated, Buffer.alloc(1)), write(contextAround(0), bytes))
}
