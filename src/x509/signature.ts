import { constants, type KeyObject, verify } from 'node:crypto'
import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround, NotDer, write } from '../crypto/der.ts'
import { type Hash, hashOf } from '../crypto/hashes.ts'
import { writeOid } from '../crypto/oid.ts'
import { signatureAlgorithms as ourAlgorithms } from '../crypto/signaturealgorithm.ts'

/** Signatures of certificates, requests and lists (RFC 3279, 4055, 5758 and 8410): one table, and one verification. */
export interface SignatureAlgorithm {
  /** Its name in the API. */
  readonly name: string
  readonly family: 'rsa' | 'ec' | 'ed25519'
  /** Undefined for Ed25519, which has one of its own. */
  readonly hash: Hash | undefined
  /** Bytes of salt; undefined where the padding is not PSS. */
  readonly saltBytes: number | undefined
  /** AlgorithmIdentifier, DER. */
  readonly identifier: Buffer
  /** SHA-1: read and reported, and never used to sign or to build a chain. */
  readonly weak: boolean
}

const empty = Buffer.alloc(0)
const absent = write(asn1.null)
const mgf1 = '1.2.840.113549.1.1.8'
const rsassaPss = '1.2.840.113549.1.1.10'
const longestSalt = 512

/** OIDs of the hashes themselves, for the parameters of PSS. */
const hashOids = {
  sha1: '1.3.14.3.2.26',
  'sha2-224': '2.16.840.1.101.3.4.2.4',
  'sha2-256': '2.16.840.1.101.3.4.2.1',
  'sha2-384': '2.16.840.1.101.3.4.2.2',
  'sha2-512': '2.16.840.1.101.3.4.2.3',
} as const
type HashName = keyof typeof hashOids

function row(name: string, family: SignatureAlgorithm['family'], oid: string, hashName: HashName): SignatureAlgorithm {
  const identifier = write(asn1.sequence, writeOid(oid), family === 'rsa' ? absent : empty)
  return { name, family, hash: hashOf(hashName), saltBytes: undefined, identifier, weak: hashName === 'sha1' }
}

/** The algorithms of our own signatures, as rows of this table. */
const made = [...ourAlgorithms.values()].map(
  ({ name, family, hash, pss, identifier }): SignatureAlgorithm => ({
    ...{ name, hash, identifier, weak: false },
    family: family === 'ecdsa' ? 'ec' : family,
    saltBytes: pss ? hash?.bytes : undefined,
  }),
)

const rows: readonly SignatureAlgorithm[] = [
  ...made,
  row('SHA1WithRSA', 'rsa', '1.2.840.113549.1.1.5', 'sha1'),
  row('SHA224WithRSA', 'rsa', '1.2.840.113549.1.1.14', 'sha2-224'),
  row('ECDSAWithSHA1', 'ec', '1.2.840.10045.4.1', 'sha1'),
  row('ECDSAWithSHA224', 'ec', '1.2.840.10045.4.3.1', 'sha2-224'),
]

/** Every algorithm by its name. */
export const signatureAlgorithms: ReadonlyMap<string, SignatureAlgorithm> = new Map(rows.map((one) => [one.name, one]))

/** RFC 4055 section 5: the NULL of PKCS#1 v1.5 may be absent. */
const withoutNull = ({ family, saltBytes, identifier }: SignatureAlgorithm): readonly Buffer[] =>
  family === 'rsa' && saltBytes === undefined
    ? [write(asn1.sequence, identifier.subarray(2, identifier.length - absent.length))]
    : []

const byIdentifier = new Map(
  rows.flatMap((one) => [one.identifier, ...withoutNull(one)].map((der) => [der.toString('latin1'), one])),
)

/**
 * @param identifier AlgorithmIdentifier, DER @returns undefined for an algorithm that is unsupported or badly written
 */
export function signatureAlgorithmOf(identifier: Buffer): SignatureAlgorithm | undefined {
  const known = byIdentifier.get(identifier.toString('latin1'))
  if (known !== undefined) return known
  try {
    return within(identifier, asn1.sequence, readPss)
  } catch (error) {
    if (error instanceof NotDer) return undefined
    throw error
  }
}

/**
 * RSASSA-PSS-params (RFC 4055 section 3.1). MGF1 must use the same hash, as RFC 4055 recommends and OpenSSL's
 * verification demands.
 */
function readPss(identifier: Cursor): SignatureAlgorithm {
  if (identifier.oid() !== rsassaPss) throw new NotDer('another algorithm')
  const start = identifier.element(asn1.sequence)
  return within(start, asn1.sequence, (parameters) => {
    const hashName = optional(parameters, 0, readHash) ?? 'sha1'
    const maskHash = optional(parameters, 1, readMask) ?? 'sha1'
    const saltBytes = optional(parameters, 2, (salt) => salt.count()) ?? 20
    const trailer = optional(parameters, 3, (field) => field.count()) ?? 1
    if (maskHash !== hashName || saltBytes > longestSalt || trailer !== 1)
      throw new NotDer('parameters of no known form')
    const hash = hashOf(hashName)
    const name = `${hash.node.toUpperCase()}WithRSAPSS`
    const der = write(asn1.sequence, writeOid(rsassaPss), start)
    return { name, family: 'rsa', hash, saltBytes, identifier: der, weak: hashName === 'sha1' }
  })
}

function optional<T>(parameters: Cursor, number: number, read: (inside: Cursor) => T): T | undefined {
  if (parameters.tag !== contextAround(number)) return undefined
  const inside = parameters.enter(contextAround(number))
  const value = read(inside)
  inside.end()
  return value
}

/** AlgorithmIdentifier of a hash; its NULL may be absent (RFC 4055 section 2.1). */
function readHash(cursor: Cursor): HashName {
  const identifier = cursor.enter(asn1.sequence)
  const oid = identifier.oid()
  if (identifier.more && identifier.contents(asn1.null).length > 0) throw new NotDer('a NULL is not empty')
  identifier.end()
  const [name] = Object.entries(hashOids).find(([, known]) => known === oid) ?? []
  if (name === undefined) throw new NotDer('another hash')
  return name as HashName
}

function readMask(cursor: Cursor): HashName {
  const identifier = cursor.enter(asn1.sequence)
  if (identifier.oid() !== mgf1) throw new NotDer('another mask')
  const name = readHash(identifier)
  identifier.end()
  return name
}

export interface SignedBytes {
  readonly publicKey: KeyObject
  /** AlgorithmIdentifier, DER. */
  readonly algorithm: Buffer
  readonly data: Buffer
  readonly signature: Buffer
}

/** Whether the key made the signature; false also for an algorithm that is not supported or does not fit the key. */
export function verifySignature({ publicKey, algorithm, data, signature }: SignedBytes): boolean {
  const row = signatureAlgorithmOf(algorithm)
  if (row === undefined || !fits(row, publicKey)) return false
  const { saltBytes } = row
  const padding =
    saltBytes === undefined ? undefined : { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: saltBytes }
  try {
    return verify(row.hash?.node, data, padding === undefined ? publicKey : { key: publicKey, ...padding }, signature)
  } catch {
    // OpenSSL throws for keys too small for the hash, and for algorithms that an RSA-PSS key does not allow.
    return false
  }
}

function fits({ family, saltBytes }: SignatureAlgorithm, { asymmetricKeyType }: KeyObject): boolean {
  return asymmetricKeyType === family || (asymmetricKeyType === 'rsa-pss' && saltBytes !== undefined)
}
