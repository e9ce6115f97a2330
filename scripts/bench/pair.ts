import { hash } from 'node:crypto'
import pkcs11js from 'pkcs11js'

export const pairTypes = ['ecdsa-p256', 'ed25519', 'rsa-2048', 'rsa-4096'] as const
export type PairType = (typeof pairTypes)[number]

/** One key pair in the token. A digest that the mechanism does not make itself belongs to the operation. */
export interface RawPair {
  sign(message: Buffer): Buffer
  verify(message: Buffer, signature: Buffer): boolean
  /** RSA alone: the block that OAEP is decoded from. */
  decrypt(ciphertext: Buffer): Buffer
  /** ECDSA alone: the public half, as CKA_EC_POINT has it. */
  readonly ecPoint: Buffer
  /** RSA alone: the public half. */
  readonly jwk: { readonly kty: 'RSA'; readonly n: string; readonly e: string }
}

/** A session in which calls are made. */
export interface RawSession {
  readonly lib: pkcs11js.PKCS11
  readonly session: pkcs11js.Handle
}

/** PKCS#11 v3.0 numbers, which pkcs11js does not have. */
const CKM_EC_EDWARDS_KEY_PAIR_GEN = 0x1055
const CKM_EDDSA = 0x1057

interface Kind {
  readonly generation: number
  /** Of the public key. */
  readonly attributes: pkcs11js.Template
  readonly usages: { readonly open: readonly number[]; readonly secret: readonly number[] }
  readonly mechanism: pkcs11js.Mechanism
  readonly signatureBytes: number
  /** The mechanism's input. */
  input(message: Buffer): Buffer
}

const sha256 = (message: Buffer): Buffer => hash('sha256', message, 'buffer')
const signing = { open: [pkcs11js.CKA_VERIFY], secret: [pkcs11js.CKA_SIGN] }
const curve = (oid: string): pkcs11js.Template => [{ type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from(oid, 'hex') }]

const rsa = (bits: number): Kind => ({
  generation: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN,
  attributes: [
    { type: pkcs11js.CKA_MODULUS_BITS, value: bits },
    { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.from([1, 0, 1]) },
  ],
  usages: { open: signing.open, secret: [...signing.secret, pkcs11js.CKA_DECRYPT] },
  mechanism: { mechanism: pkcs11js.CKM_RSA_PKCS_PSS, parameter: pss(bits) },
  signatureBytes: bits / 8,
  input: sha256,
})

/** The longest salt that fits, as Strongroom's default: all but the digest and two bytes (RFC 8017, 9.1.1). */
const pss = (bits: number): pkcs11js.RsaPSS => ({
  type: pkcs11js.CK_PARAMS_RSA_PSS,
  hashAlg: pkcs11js.CKM_SHA256,
  mgf: pkcs11js.CKG_MGF1_SHA256,
  saltLen: bits / 8 - 34,
})

const kinds: Readonly<Record<PairType, Kind>> = {
  'ecdsa-p256': {
    generation: pkcs11js.CKM_EC_KEY_PAIR_GEN,
    attributes: curve('06082a8648ce3d030107'),
    usages: signing,
    mechanism: { mechanism: pkcs11js.CKM_ECDSA },
    signatureBytes: 64,
    input: sha256,
  },
  ed25519: {
    generation: CKM_EC_EDWARDS_KEY_PAIR_GEN,
    attributes: curve('06032b6570'),
    usages: signing,
    mechanism: { mechanism: CKM_EDDSA },
    signatureBytes: 64,
    input: (message) => message,
  },
  'rsa-2048': rsa(2048),
  'rsa-4096': rsa(4096),
}

/** Makes a pair of session objects. */
export function makePair({ lib, session }: RawSession, type: PairType): RawPair {
  const { generation, attributes, usages, mechanism, signatureBytes, input } = kinds[type]
  const flags = (types: readonly number[]) => types.map((one) => ({ type: one, value: true }))
  const { publicKey, privateKey } = lib.C_GenerateKeyPair(
    session,
    { mechanism: generation },
    [...attributes, ...flags(usages.open)],
    flags(usages.secret),
  )
  const attribute = (which: number): Buffer => {
    const [found] = lib.C_GetAttributeValue(session, publicKey, [{ type: which }])
    return Buffer.from(found?.value as Buffer)
  }
  const word = (which: number): string => attribute(which).toString('base64url')
  return {
    sign(message) {
      lib.C_SignInit(session, mechanism, privateKey)
      return lib.C_Sign(session, input(message), Buffer.allocUnsafe(signatureBytes))
    },
    verify(message, signature) {
      lib.C_VerifyInit(session, mechanism, publicKey)
      return lib.C_Verify(session, input(message), signature)
    },
    decrypt(ciphertext) {
      lib.C_DecryptInit(session, { mechanism: pkcs11js.CKM_RSA_X_509 }, privateKey)
      return lib.C_Decrypt(session, ciphertext, Buffer.allocUnsafe(signatureBytes))
    },
    get jwk() {
      return { kty: 'RSA', n: word(pkcs11js.CKA_MODULUS), e: word(pkcs11js.CKA_PUBLIC_EXPONENT) } as const
    },
    get ecPoint() {
      return attribute(pkcs11js.CKA_EC_POINT)
    },
  }
}
