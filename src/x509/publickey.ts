import { createPublicKey, type KeyObject } from 'node:crypto'
import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, write } from '../crypto/der.ts'
import { isKeyPoint } from '../crypto/edwards.ts'
import { digest, hashOf } from '../crypto/hashes.ts'
import { writeOid } from '../crypto/oid.ts'
import { withoutStackTraces } from '../crypto/stacktraces.ts'
import { Malformed, reading } from './malformed.ts'

/** SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7; RFC 3279, 4055, 5480 and 8410 for its algorithms). */

export type Curve = 'P-224' | 'P-256' | 'P-384' | 'P-521'

/** The kind and size of a key. Policies decide whether it is strong enough. */
export type SubjectKey =
  | {
      readonly family: 'rsa'
      readonly bits: number
      readonly exponent: bigint
      /** id-RSASSA-PSS: a key that may make no other signatures. */
      readonly pssOnly: boolean
      /** The contents of subjectPublicKey. */
      readonly encoded: Buffer
    }
  | { readonly family: 'ec'; readonly bits: number; readonly curve: Curve; readonly encoded: Buffer }
  | { readonly family: 'ed25519'; readonly bits: 256; readonly encoded: Buffer }

const sha256 = hashOf('sha2-256')

const rsaEncryption = '1.2.840.113549.1.1.1'
const rsaPss = '1.2.840.113549.1.1.10'
const ecPublicKey = '1.2.840.10045.2.1'
const ed25519 = '1.3.101.112'

const curves: ReadonlyMap<string, { readonly curve: Curve; readonly bits: number }> = new Map([
  ['1.3.132.0.33', { curve: 'P-224', bits: 224 }],
  ['1.2.840.10045.3.1.7', { curve: 'P-256', bits: 256 }],
  ['1.3.132.0.34', { curve: 'P-384', bits: 384 }],
  ['1.3.132.0.35', { curve: 'P-521', bits: 521 }],
])

/** OpenSSL verifies with at most this many. */
const mostModulusBits = 16_384
const mostExponentBytes = 8

/** @param spki DER @throws Malformed also for algorithms and curves that are not supported */
export const readSubjectKey = (spki: Buffer): SubjectKey =>
  reading('public key', () =>
    within(spki, asn1.sequence, (info) => {
      const identifier = info.enter(asn1.sequence)
      const key = readKey(identifier, info)
      identifier.end()
      return key
    }),
  )

function readKey(identifier: Cursor, info: Cursor): SubjectKey {
  const algorithm = identifier.oid()
  switch (algorithm) {
    case rsaEncryption:
      if (identifier.contents(asn1.null).length > 0) throw new Malformed('a NULL is not empty')
      return readRsa(info.bytes(), false)
    case rsaPss:
      if (identifier.more) identifier.skip(asn1.sequence)
      return readRsa(info.bytes(), true)
    case ecPublicKey:
      return readEc(identifier, info)
    case ed25519: {
      const encoded = info.bytes()
      if (encoded.length !== 32) throw new Malformed('an Ed25519 key has 32 bytes')
      return { family: 'ed25519', bits: 256, encoded }
    }
    default:
      throw new Malformed(`algorithm ${algorithm} is not supported`)
  }
}

function readRsa(encoded: Buffer, pssOnly: boolean): SubjectKey {
  const [modulus, exponent] = within(encoded, asn1.sequence, (numbers) => [numbers.integer(), numbers.integer()])
  if (isNegative(modulus) || isEven(modulus)) throw new Malformed('an RSA modulus is a positive odd number')
  const high = modulus[0] === 0 ? 1 : 0
  const bits = 8 * (modulus.length - high) - (Math.clz32(modulus[high] ?? 0) - 24)
  if (bits > mostModulusBits) throw new Malformed(`an RSA modulus has at most ${mostModulusBits} bits`)
  const value = exponent.length > mostExponentBytes ? 0n : BigInt(`0x${exponent.toString('hex')}`)
  if (isNegative(exponent) || isEven(exponent) || value < 3n) {
    throw new Malformed(`an RSA exponent is an odd number from 3 on, of at most ${8 * mostExponentBytes - 1} bits`)
  }
  return { family: 'rsa', bits, exponent: value, pssOnly, encoded }
}

const isNegative = (integer: Buffer): boolean => (integer[0] ?? 0) > 0x7f
const isEven = (integer: Buffer): boolean => ((integer.at(-1) ?? 0) & 1) === 0

/** A named curve and an uncompressed point (RFC 5480 section 2). */
function readEc(identifier: Cursor, info: Cursor): SubjectKey {
  if (identifier.tag !== asn1.oid) throw new Malformed('the curve must be named by its OID, not by parameters')
  const oid = identifier.oid()
  const named = curves.get(oid)
  if (named === undefined) throw new Malformed(`curve ${oid} is not supported`)
  const encoded = info.bytes()
  if (encoded[0] !== 4 || encoded.length !== 1 + 2 * Math.ceil(named.bits / 8)) {
    throw new Malformed(`it is not an uncompressed point of ${named.curve}`)
  }
  return { family: 'ec', ...named, encoded }
}

/** The key as a KeyObject; node:crypto checks that a point lies on its curve. @param spki DER @throws Malformed */
export function importSubjectKey(spki: Buffer): KeyObject {
  const key = readSubjectKey(spki)
  if (key.family === 'ed25519' && !isKeyPoint(key.encoded)) {
    throw new Malformed('public key: its point is not on the curve, or of small order')
  }
  try {
    return withoutStackTraces(() => createPublicKey({ key: spki, format: 'der', type: 'spki' }))
  } catch (error) {
    throw new Malformed('public key: its numbers do not form a valid key', { cause: error })
  }
}

/**
 * SHA-256 of a public key as a private key of it has it: a key of type id-RSASSA-PSS is one of type rsaEncryption, too
 * (RFC 4055 section 1.2). @param spki DER @throws Malformed
 */
export function keyFingerprintOf(spki: Buffer): Buffer {
  const key = readSubjectKey(spki)
  return digest(sha256, key.family === 'rsa' && key.pssOnly ? plainRsa(key.encoded) : spki)
}

const plainRsa = (encoded: Buffer): Buffer =>
  write(
    asn1.sequence,
    write(asn1.sequence, writeOid(rsaEncryption), write(asn1.null)),
    write(asn1.bitString, Buffer.alloc(1), encoded),
  )
