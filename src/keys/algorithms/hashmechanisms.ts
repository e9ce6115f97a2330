import { type Hash, hashOf } from '../../crypto/hashes.ts'
import { CKG, CKM } from '../../hsm/constants.ts'

/** The PKCS#11 numbers of a hash: of its HMAC (CKM_*_HMAC), and of RSA-PSS with it (CKM_RSA_PKCS_PSS). */
export interface HashMechanisms {
  /** HMAC with this hash. */
  readonly hmac: { readonly type: number }
  /** Parameters of CKM_RSA_PKCS_PSS: a CKM and a CKG number. */
  readonly hash: number
  readonly mgf: number
}

const rows = [
  ['sha1', CKM.SHA_1_HMAC, CKM.SHA_1, CKG.MGF1_SHA1],
  ['sha2-224', CKM.SHA224_HMAC, CKM.SHA224, CKG.MGF1_SHA224],
  ['sha2-256', CKM.SHA256_HMAC, CKM.SHA256, CKG.MGF1_SHA256],
  ['sha2-384', CKM.SHA384_HMAC, CKM.SHA384, CKG.MGF1_SHA384],
  ['sha2-512', CKM.SHA512_HMAC, CKM.SHA512, CKG.MGF1_SHA512],
  ['sha3-224', CKM.SHA3_224_HMAC, CKM.SHA3_224, CKG.MGF1_SHA3_224],
  ['sha3-256', CKM.SHA3_256_HMAC, CKM.SHA3_256, CKG.MGF1_SHA3_256],
  ['sha3-384', CKM.SHA3_384_HMAC, CKM.SHA3_384, CKG.MGF1_SHA3_384],
  ['sha3-512', CKM.SHA3_512_HMAC, CKM.SHA3_512, CKG.MGF1_SHA3_512],
] as const

const mechanisms: ReadonlyMap<Hash, HashMechanisms> = new Map(
  rows.map(([hash, hmac, mechanism, mgf]) => [hashOf(hash), { hmac: { type: hmac }, hash: mechanism, mgf }]),
)

/** Every hash of crypto/hashes has its numbers here. */
export function mechanismsOf(hash: Hash): HashMechanisms {
  const found = mechanisms.get(hash)
  if (found === undefined) throw new Error(`no mechanisms of hash ${hash.name}`)
  return found
}
