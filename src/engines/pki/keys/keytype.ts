import type { KeyObject } from 'node:crypto'
import { badRequest } from '../../../errors.ts'
import type { KeyType } from '../authority/tables.ts'

/** The type and size of a key to make, and its name in the table of algorithms. */
export interface KeyKind {
  readonly type: KeyType
  /** Size of the modulus or the curve; 0 for Ed25519. */
  readonly bits: number
  readonly algorithm: string
}

interface Family {
  readonly usual: number
  readonly bits: readonly number[]
  algorithm(bits: number): string
}

const families: Readonly<Record<KeyType, Family>> = {
  rsa: { usual: 2048, bits: [2048, 3072, 4096], algorithm: (bits) => `rsa-${bits}` },
  ec: { usual: 256, bits: [224, 256, 384, 521], algorithm: (bits) => `ecdsa-p${bits}` },
  ed25519: { usual: 0, bits: [0], algorithm: () => 'ed25519' },
}

const isKeyType = (type: string): type is KeyType => Object.hasOwn(families, type)

/**
 * Reads key_type and key_bits of a key to generate.
 * @param type rsa when absent
 * @param bits 0 is the usual size of the type; ignored for ed25519
 * @throws ApiError 400
 */
export function keyKind(type = 'rsa', bits = 0): KeyKind {
  if (!isKeyType(type)) throw badRequest(`unknown key type ${type}`)
  const { usual, bits: sizes, algorithm } = families[type]
  const size = bits === 0 || type === 'ed25519' ? usual : bits
  if (type === 'rsa' && size < 2048) {
    throw badRequest(`RSA keys < 2048 bits are unsafe and not supported: got ${size}`)
  }
  if (!sizes.includes(size)) {
    throw badRequest(`unsupported bit length for ${type.toUpperCase()} key: ${size}`)
  }
  return { type, bits: size, algorithm: algorithm(size) }
}

/** node:crypto's names of the curves. */
const curveBits: Readonly<Record<string, number>> = { secp224r1: 224, prime256v1: 256, secp384r1: 384, secp521r1: 521 }

/** Type and size of an existing key. */
export function kindOf(publicKey: KeyObject): Pick<KeyKind, 'type' | 'bits'> {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = publicKey
  if (type === 'ec') return { type, bits: curveBits[details?.namedCurve ?? ''] ?? 0 }
  if (type === 'ed25519') return { type, bits: 0 }
  return { type: 'rsa', bits: details?.modulusLength ?? 0 }
}
