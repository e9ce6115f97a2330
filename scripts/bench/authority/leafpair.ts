import pkcs11js from 'pkcs11js'
import { asn1, contextAround, write, writeNumber } from '../../../src/crypto/der.ts'
import type { RawSession } from '../pair.ts'

export type LeafPairType = 'ec-256' | 'rsa-2048'

/** A pair that was made in the token, read and destroyed there. */
export interface LeafPair {
  /** ECPrivateKey (RFC 5915) or RSAPrivateKey (RFC 8017), DER. */
  readonly privateKey: Buffer
  readonly label: string
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
}

interface Kind {
  readonly generation: number
  readonly publicAttributes: pkcs11js.Template
  make(read: Read): LeafPair
}
/** Attributes of one half. */
type Read = (half: 'public' | 'private', ...types: readonly number[]) => Buffer[]

const p256 = Buffer.from('06082a8648ce3d030107', 'hex')
const ecIdentifier = write(asn1.sequence, Buffer.from('06072a8648ce3d0201', 'hex'), p256)
const rsaIdentifier = write(asn1.sequence, Buffer.from('06092a864886f70d010101', 'hex'), write(asn1.null))
const wholeBytes = Buffer.alloc(1)
const number = (value: number): Buffer => writeNumber(Buffer.from([value]))

/** @param point as CKA_EC_POINT has it: an OCTET STRING */
export const ecSpki = (point: Buffer): Buffer =>
  write(asn1.sequence, ecIdentifier, write(asn1.bitString, wholeBytes, point.subarray(2)))

const kinds: Readonly<Record<LeafPairType, Kind>> = {
  'ec-256': {
    generation: pkcs11js.CKM_EC_KEY_PAIR_GEN,
    publicAttributes: [{ type: pkcs11js.CKA_EC_PARAMS, value: p256 }],
    make(read) {
      const [point = wholeBytes] = read('public', pkcs11js.CKA_EC_POINT)
      const [value = wholeBytes] = read('private', pkcs11js.CKA_VALUE)
      const scalar = Buffer.alloc(32)
      value.copy(scalar, 32 - value.length)
      const publicPart = write(contextAround(1), write(asn1.bitString, wholeBytes, point.subarray(2)))
      const secret = [number(1), write(asn1.octetString, scalar), write(contextAround(0), p256), publicPart]
      return { privateKey: write(asn1.sequence, ...secret), label: 'EC PRIVATE KEY', spki: ecSpki(point) }
    },
  },
  'rsa-2048': {
    generation: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN,
    publicAttributes: [
      { type: pkcs11js.CKA_MODULUS_BITS, value: 2048 },
      { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.from([1, 0, 1]) },
    ],
    make(read) {
      const numbers = read(
        'private',
        ...[pkcs11js.CKA_MODULUS, pkcs11js.CKA_PUBLIC_EXPONENT, pkcs11js.CKA_PRIVATE_EXPONENT, pkcs11js.CKA_PRIME_1],
        ...[pkcs11js.CKA_PRIME_2, pkcs11js.CKA_EXPONENT_1, pkcs11js.CKA_EXPONENT_2, pkcs11js.CKA_COEFFICIENT],
      ).map(writeNumber)
      const open = write(asn1.sequence, ...numbers.slice(0, 2))
      return {
        privateKey: write(asn1.sequence, number(0), ...numbers),
        label: 'RSA PRIVATE KEY',
        spki: write(asn1.sequence, rsaIdentifier, write(asn1.bitString, wholeBytes, open)),
      }
    },
  },
}

/** Makes a pair of session objects, reads it and destroys it. */
export function makeLeafPair({ lib, session }: RawSession, type: LeafPairType): LeafPair {
  const { generation, publicAttributes, make } = kinds[type]
  const { publicKey, privateKey } = lib.C_GenerateKeyPair(
    session,
    { mechanism: generation },
    [...publicAttributes, { type: pkcs11js.CKA_VERIFY, value: true }],
    [
      { type: pkcs11js.CKA_SIGN, value: true },
      { type: pkcs11js.CKA_SENSITIVE, value: false },
      { type: pkcs11js.CKA_EXTRACTABLE, value: true },
    ],
  )
  const pair = make((half, ...types) =>
    lib
      .C_GetAttributeValue(
        session,
        half === 'public' ? publicKey : privateKey,
        types.map((one) => ({ type: one })),
      )
      .map(({ value }) => value as Buffer),
  )
  lib.C_DestroyObject(session, privateKey)
  lib.C_DestroyObject(session, publicKey)
  return pair
}
