import type { Algorithm, PairAlgorithm } from './algorithms/algorithm.ts'
import { ecdsa } from './algorithms/ecdsa.ts'
import { ed25519 } from './algorithms/ed25519.ts'
import { importedRsa, rsa } from './algorithms/rsa.ts'
import { aesGcm, chacha20Poly1305, hmac } from './algorithms/secrets.ts'

/**
 * THE table: every key type. Their differences are data or functions of the row (algorithms/algorithm.ts), made by the
 * builder of its kind in algorithms/. Two other places depend on the kind: the reader of Vault's backups, whose format
 * has fields of its own for each (engines/transit/blob/vaultblob.ts), and Ed25519 where the token cannot wrap it: its
 * seed is made, enveloped and derived as such (making/making.ts, use/derived.ts, materials/extraction.ts).
 *
 * A new type of a known kind is one row here; a new kind that the token wraps is one file in algorithms/. Both need
 * test vectors.
 */
const rows: readonly Algorithm[] = [
  aesGcm(128),
  aesGcm(256),
  chacha20Poly1305,
  // FIPS 186-5 / SP 800-186 domain parameters.
  ecdsa(256, {
    openssl: 'prime256v1',
    oid: '06082a8648ce3d030107',
    prime: 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn,
    order: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
    certification: ['06082a8648ce3d040302', 'sha2-256'],
  }),
  ecdsa(384, {
    openssl: 'secp384r1',
    oid: '06052b81040022',
    prime: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
    order: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
    certification: ['06082a8648ce3d040303', 'sha2-384'],
  }),
  ecdsa(521, {
    openssl: 'secp521r1',
    oid: '06052b81040023',
    prime: 2n ** 521n - 1n,
    order:
      0x1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
    certification: ['06082a8648ce3d040304', 'sha2-512'],
  }),
  ed25519,
  rsa(2048),
  rsa(3072),
  rsa(4096),
  hmac,
]

/** Types used only for certificates: keys of authorities and leaves. */
const certificateRows: readonly PairAlgorithm[] = [
  ecdsa(224, {
    openssl: 'secp224r1',
    oid: '06052b81040021',
    prime: 2n ** 224n - 2n ** 96n + 1n,
    order: 0xffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3dn,
    certification: ['06082a8648ce3d040302', 'sha2-256'],
  }),
]

/** The key types for general use, by their name on the wire. */
export const algorithms: ReadonlyMap<string, Algorithm> = new Map(rows.map((row) => [row.name, row]))
const certificateTypes = new Map(certificateRows.map((row) => [row.name, row]))

/** The row of a type that signs certificates or is certified: including imported RSA of any size. */
export function pairAlgorithm(name: string): PairAlgorithm | undefined {
  const general = algorithms.get(name)
  if (general !== undefined) return general.class === 'private' ? general : undefined
  return certificateTypes.get(name) ?? importedRsa(name)
}

/** The pair type with that curve; undefined for one that is not served. @param oid contents, in hexadecimal */
export const ofCurve = (oid: string): PairAlgorithm | undefined =>
  [...algorithms.values(), ...certificateRows].find(
    (row): row is PairAlgorithm => row.kind === 'ec' && row.ecParameters.toString('hex', 2) === oid,
  )

/** The row of a type that the database names; if it is missing, the database row is damaged. */
export function algorithmOf(name: string): Algorithm {
  const algorithm = algorithms.get(name) ?? pairAlgorithm(name)
  if (algorithm === undefined) throw new Error(`no algorithm ${name}`)
  return algorithm
}
