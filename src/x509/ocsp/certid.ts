import { type Cursor, within } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { digest, type Hash, hashOf } from '../../crypto/hashes.ts'
import { Malformed } from '../malformed.ts'
import { readSubjectKey } from '../publickey.ts'
import { mostSerialBytes } from '../serial.ts'

/** The certificate that a request asks about (RFC 6960 section 4.1.1). Its buffers are views of the request. */
export interface CertId {
  /** The whole element: the answer repeats it byte for byte. */
  readonly der: Buffer
  readonly algorithm: CertIdAlgorithm
  /** Digest of the issuer's name, then digest of its key. */
  readonly issuer: Buffer
  /** Magnitude, without leading zeros; zero is one byte. */
  readonly serial: Buffer
}

/** The encoding of a hash algorithm in a request. */
export interface CertIdAlgorithm {
  readonly hash: Hash
  /**
   * AlgorithmIdentifier, DER: with NULL or without (RFC 5754 section 2). The answer repeats the form of the request.
   */
  readonly identifier: Buffer
}

const hashNames = ['sha1', 'sha2-256', 'sha2-384', 'sha2-512'] as const

const algorithms: ReadonlyMap<string, CertIdAlgorithm> = new Map(
  hashNames.flatMap((name) => {
    const hash = hashOf(name)
    const withNull = hash.digestInfo.subarray(2, -2)
    const withoutNull = write(asn1.sequence, withNull.subarray(2, -2))
    return [withNull, withoutNull].map((identifier) => [identifier.toString('latin1'), { hash, identifier }])
  }),
)

/**
 * Reads the next element. @throws NotDer; Malformed also for other hashes, and for serial numbers that no certificate
 * may have
 */
export function readCertId(list: Cursor): CertId {
  const der = list.element(asn1.sequence)
  return within(der, asn1.sequence, (inside) => {
    const algorithm = algorithms.get(inside.element(asn1.sequence).toString('latin1'))
    if (algorithm === undefined) throw new Malformed('unsupported hash algorithm')
    const nameHash = inside.contents(asn1.octetString)
    const keyHash = inside.contents(asn1.octetString)
    const { bytes } = algorithm.hash
    if (nameHash.length !== bytes || keyHash.length !== bytes)
      throw new Malformed('a digest has the wrong length for its hash')
    return { der, algorithm, issuer: Buffer.concat([nameHash, keyHash]), serial: magnitudeOf(inside.integer()) }
  })
}

function magnitudeOf(serial: Buffer): Buffer {
  if ((serial[0] ?? 0) > 0x7f) throw new Malformed('a serial number is negative')
  const magnitude = serial[0] === 0 && serial.length > 1 ? serial.subarray(1) : serial
  if (magnitude.length > mostSerialBytes) throw new Malformed(`a serial number has more than ${mostSerialBytes} bytes`)
  return magnitude
}

/**
 * The `issuer` of a CertId for certificates of an issuer with this name and key.
 * @param issuer its name and SubjectPublicKeyInfo, DER
 */
export const issuerDigests = (hash: Hash, issuer: { readonly subject: Buffer; readonly spki: Buffer }): Buffer =>
  Buffer.concat([digest(hash, issuer.subject), digest(hash, readSubjectKey(issuer.spki).encoded)])
