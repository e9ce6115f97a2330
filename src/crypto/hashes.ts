import { hash as hashOnce } from 'node:crypto'

/** One row for each hash, shared by all layers. */
export interface Hash {
  /** The name on the wire. */
  readonly name: string
  readonly family: 'sha1' | 'sha2' | 'sha3'
  /** Its name in node:crypto and OpenSSL. */
  readonly node: string
  readonly bytes: number
  /** DER of `DigestInfo` up to the digest itself (RFC 8017 section 9.2, note 1). */
  readonly digestInfo: Buffer
  /** Whether FIPS mode uses it without a warning. */
  readonly fips: boolean
}

/** `DigestInfo` is a SEQUENCE of AlgorithmIdentifier (with NULL parameters) and OCTET STRING. */
function digestInfo(oid: string, bytes: number): Buffer {
  const body = Buffer.from(oid, 'hex')
  const identifier = Buffer.concat([Buffer.from([0x30, body.length + 4, 0x06, body.length]), body, Buffer.from([5, 0])])
  return Buffer.concat([Buffer.from([0x30, identifier.length + 2 + bytes]), identifier, Buffer.from([0x04, bytes])])
}

const nist = '6086480165030402'

const rows = [
  ['sha1', 'sha1', 'sha1', 20, '2b0e03021a'],
  ['sha2-224', 'sha2', 'sha224', 28, `${nist}04`],
  ['sha2-256', 'sha2', 'sha256', 32, `${nist}01`],
  ['sha2-384', 'sha2', 'sha384', 48, `${nist}02`],
  ['sha2-512', 'sha2', 'sha512', 64, `${nist}03`],
  ['sha3-224', 'sha3', 'sha3-224', 28, `${nist}07`],
  ['sha3-256', 'sha3', 'sha3-256', 32, `${nist}08`],
  ['sha3-384', 'sha3', 'sha3-384', 48, `${nist}09`],
  ['sha3-512', 'sha3', 'sha3-512', 64, `${nist}0a`],
] as const

/** Every supported hash by its name on the wire. `none` is not among them: it means the absence of a hash. */
export const hashes: ReadonlyMap<string, Hash> = new Map(
  rows.map(([name, family, node, bytes, oid]) => [
    name,
    {
      name,
      family,
      node,
      bytes,
      digestInfo: digestInfo(oid, bytes),
      fips: family === 'sha2',
    },
  ]),
)

/** The row of a hash that the code itself names. */
export function hashOf(name: string): Hash {
  const hash = hashes.get(name)
  if (hash === undefined) throw new Error(`no hash ${name}`)
  return hash
}

/** The digest of public data, made on the host: no key takes part. Going through a string takes a third of the time. */
export const digest = (hash: Hash, input: Uint8Array): Buffer =>
  Buffer.from(hashOnce(hash.node, input, 'binary'), 'latin1')
