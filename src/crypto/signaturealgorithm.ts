import { asn1, write, writeNumber } from './der.ts'
import { type Hash, hashOf } from './hashes.ts'

/** The names of signatures on certificates, as clients of this API know them (those of Go's crypto/x509). */
export type SignatureName = (typeof names)[number]
const names = [
  'SHA256WithRSA',
  'SHA384WithRSA',
  'SHA512WithRSA',
  'SHA256WithRSAPSS',
  'SHA384WithRSAPSS',
  'SHA512WithRSAPSS',
  'ECDSAWithSHA256',
  'ECDSAWithSHA384',
  'ECDSAWithSHA512',
  'Ed25519',
] as const

/** The signature algorithm of a certificate, a request, a CRL or an OCSP answer. */
export interface SignatureAlgorithm {
  readonly name: SignatureName
  readonly family: 'rsa' | 'ecdsa' | 'ed25519'
  /** Undefined for Ed25519, which signs whole inputs. */
  readonly hash: Hash | undefined
  /** RSASSA-PSS with MGF1 by the same hash and a salt as long as the hash. */
  readonly pss: boolean
  /** AlgorithmIdentifier (DER). */
  readonly identifier: Buffer
}

const oid = (contents: string): Buffer => write(asn1.oid, Buffer.from(contents, 'hex'))
const pkcs1 = '2a864886f70d0101'
const ansiX962 = '2a8648ce3d0403'

/** id-sha… with NULL (RFC 4055 section 2.1): the first part of DigestInfo. */
const hashIdentifier = ({ digestInfo }: Hash): Buffer => digestInfo.subarray(2, -2)

/** RSASSA-PSS-params (RFC 4055 section 3.1); the trailer is the default, which DER leaves out. */
function pssParameters(hash: Hash): Buffer {
  const mask = write(asn1.sequence, oid(`${pkcs1}08`), hashIdentifier(hash))
  const salt = writeNumber(Buffer.from([hash.bytes]))
  return write(asn1.sequence, write(0xa0, hashIdentifier(hash)), write(0xa1, mask), write(0xa2, salt))
}

/** RFC 4055 section 5 (PKCS#1 v1.5) and section 3 (PSS). @param last arc of shaXXXWithRSAEncryption */
function rsa(bits: 256 | 384 | 512, last: string): readonly SignatureAlgorithm[] {
  const hash = hashOf(`sha2-${bits}`)
  const common = { family: 'rsa', hash } as const
  const plain = write(asn1.sequence, oid(pkcs1 + last), write(asn1.null))
  const pss = write(asn1.sequence, oid(`${pkcs1}0a`), pssParameters(hash))
  return [
    { ...common, name: `SHA${bits}WithRSA`, pss: false, identifier: plain },
    { ...common, name: `SHA${bits}WithRSAPSS`, pss: true, identifier: pss },
  ]
}

/** RFC 5758 section 3.2: no parameters. @param last arc of ecdsa-with-SHAXXX */
const ecdsa = (bits: 256 | 384 | 512, last: string): SignatureAlgorithm => ({
  name: `ECDSAWithSHA${bits}`,
  family: 'ecdsa',
  hash: hashOf(`sha2-${bits}`),
  pss: false,
  identifier: write(asn1.sequence, oid(ansiX962 + last)),
})

/** RFC 8410 section 3: no parameters. */
const ed25519: SignatureAlgorithm = {
  name: 'Ed25519',
  family: 'ed25519',
  hash: undefined,
  pss: false,
  identifier: write(asn1.sequence, oid('2b6570')),
}

const rows: readonly SignatureAlgorithm[] = [
  ...rsa(256, '0b'),
  ...rsa(384, '0c'),
  ...rsa(512, '0d'),
  ecdsa(256, '02'),
  ecdsa(384, '03'),
  ecdsa(512, '04'),
  ed25519,
]

/** Every signature algorithm of certificates, by its name. */
export const signatureAlgorithms: ReadonlyMap<string, SignatureAlgorithm> = new Map(rows.map((row) => [row.name, row]))

/** The row of a name used in the code. */
export function signatureAlgorithmOf(name: SignatureName): SignatureAlgorithm {
  const algorithm = signatureAlgorithms.get(name)
  if (algorithm === undefined) throw new Error(`no signature algorithm ${name}`)
  return algorithm
}
