import type { Attribute } from './binding.ts'
import { CKA } from './constants.ts'

/** The attributes that can be read of an object, by name, decoded. */
export interface AttributeValues {
  class: number
  keyType: number
  label: string
  id: Buffer
  token: boolean
  sensitive: boolean
  extractable: boolean
  modifiable: boolean
  copyable: boolean
  local: boolean
  neverExtractable: boolean
  alwaysSensitive: boolean
  encrypt: boolean
  decrypt: boolean
  sign: boolean
  wrap: boolean
  unwrap: boolean
  derive: boolean
  valueLength: number
  value: Buffer
  modulus: Buffer
  publicExponent: Buffer
  privateExponent: Buffer
  prime1: Buffer
  prime2: Buffer
  exponent1: Buffer
  exponent2: Buffer
  coefficient: Buffer
  ecParameters: Buffer
  /** The bare point: 04 ‖ X ‖ Y, or the 32 bytes of Ed25519. */
  ecPoint: Buffer
}
export type AttributeName = keyof AttributeValues

const readers = {
  boolean: (bytes: Buffer): boolean => bytes[0] === 1,
  number: (bytes: Buffer): number => Number(bytes.readBigUInt64LE()),
  text: (bytes: Buffer): string => bytes.toString('utf8'),
  bytes: (bytes: Buffer): Buffer => bytes,
  point: barePoint,
}

const table: Record<AttributeName, readonly [number, (bytes: Buffer) => AttributeValues[AttributeName]]> = {
  class: [CKA.CLASS, readers.number],
  keyType: [CKA.KEY_TYPE, readers.number],
  label: [CKA.LABEL, readers.text],
  id: [CKA.ID, readers.bytes],
  token: [CKA.TOKEN, readers.boolean],
  sensitive: [CKA.SENSITIVE, readers.boolean],
  extractable: [CKA.EXTRACTABLE, readers.boolean],
  modifiable: [CKA.MODIFIABLE, readers.boolean],
  copyable: [CKA.COPYABLE, readers.boolean],
  local: [CKA.LOCAL, readers.boolean],
  neverExtractable: [CKA.NEVER_EXTRACTABLE, readers.boolean],
  alwaysSensitive: [CKA.ALWAYS_SENSITIVE, readers.boolean],
  encrypt: [CKA.ENCRYPT, readers.boolean],
  decrypt: [CKA.DECRYPT, readers.boolean],
  sign: [CKA.SIGN, readers.boolean],
  wrap: [CKA.WRAP, readers.boolean],
  unwrap: [CKA.UNWRAP, readers.boolean],
  derive: [CKA.DERIVE, readers.boolean],
  valueLength: [CKA.VALUE_LEN, readers.number],
  value: [CKA.VALUE, readers.bytes],
  modulus: [CKA.MODULUS, readers.bytes],
  publicExponent: [CKA.PUBLIC_EXPONENT, readers.bytes],
  privateExponent: [CKA.PRIVATE_EXPONENT, readers.bytes],
  prime1: [CKA.PRIME_1, readers.bytes],
  prime2: [CKA.PRIME_2, readers.bytes],
  exponent1: [CKA.EXPONENT_1, readers.bytes],
  exponent2: [CKA.EXPONENT_2, readers.bytes],
  coefficient: [CKA.COEFFICIENT, readers.bytes],
  ecParameters: [CKA.EC_PARAMS, readers.bytes],
  ecPoint: [CKA.EC_POINT, readers.point],
}

/** The list for C_GetAttributeValue. */
export const asking = (names: readonly AttributeName[]): Attribute[] => names.map((name) => ({ type: table[name][0] }))

/** The token's answers by name; undefined for an attribute that the object lacks or does not show. */
export function answered<K extends AttributeName>(
  names: readonly K[],
  values: readonly (Buffer | undefined)[],
): { [P in K]: AttributeValues[P] | undefined } {
  const entries = names.map((name, index) => {
    const bytes = values[index]
    return [name, bytes === undefined ? undefined : table[name][1](bytes)]
  })
  return Object.fromEntries(entries)
}

/** Bare point lengths: Ed25519, and 1 + 2n of P-224, P-256, P-384, P-521. */
const pointBytes = [32, 57, 65, 97, 133]

/**
 * Tokens give CKA_EC_POINT as a DER OCTET STRING or bare. Only the length tells: a bare point also begins with 04, and
 * its second byte may look like a length.
 */
function barePoint(value: Buffer): Buffer {
  if (pointBytes.includes(value.length)) return value
  const header = value[1] === 0x81 ? 3 : 2
  return value.subarray(header)
}
