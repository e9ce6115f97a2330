import { createPublicKey } from 'node:crypto'
import { Arithmetic } from '../../crypto/arithmetic.ts'
import { asn1, write, writeNumber } from '../../crypto/der.ts'
import { pointOf } from '../../crypto/edwards.ts'
import { badRequest } from '../../errors.ts'
import type { Ec, Ed25519, Pair, Rsa } from '../algorithms/algorithm.ts'
import { ecPair } from '../algorithms/ecdsa.ts'
import { ed25519Pair } from '../algorithms/ed25519.ts'
import { wipePair, writePkcs8 } from '../making/pair.ts'
import type { KeyBytes } from './keyimport.ts'

/**
 * Keys from bare numbers (big-endian, without leading zeros), as the reference's backups hold them. Secret numbers are
 * wiped. All keys are checked again when they are brought into the token.
 */

/** Without d only the public half. @throws ApiError 400 */
export function ecKey(
  algorithm: Ec,
  { x, y, d }: { x: Buffer | undefined; y: Buffer | undefined; d: Buffer | undefined },
): KeyBytes {
  return lend([d], () => {
    const { coordinateBytes } = algorithm.curve
    const coordinates = { x: coordinate(x, coordinateBytes), y: coordinate(y, coordinateBytes) }
    if (d === undefined) return publicBytes({ kty: 'EC', crv: algorithm.jwk, ...coordinates })
    const pair = ecPair(algorithm, d)
    const own = pair.publicKey.export({ format: 'jwk' })
    if (own.x === coordinates.x && own.y === coordinates.y) return pairBytes(pair)
    wipePair(pair)
    throw badRequest('error parsing asymmetric key: its public key is not that of its private key')
  })
}

interface RsaNumbers {
  readonly n: Buffer | undefined
  readonly e: Buffer | undefined
  readonly d: Buffer | undefined
  readonly primes: readonly (Buffer | undefined)[]
}

/** Without d only the public half. @throws ApiError 400 */
export function rsaKey(algorithm: Rsa, { n, e, d, primes }: RsaNumbers): KeyBytes {
  return lend([d, ...primes], () => {
    const [p, q, ...more] = primes
    if (more.length > 0) throw badRequest('error parsing asymmetric key: it has more than two primes')
    if (n === undefined || e === undefined) throw badRequest('error parsing asymmetric key: its modulus is missing')
    if (d === undefined) return publicBytes({ kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') })
    using of = new Arithmetic()
    if (p === undefined || q === undefined || !isBig(p) || !isBig(q))
      throw badRequest('error parsing asymmetric key: its primes are missing')
    if ([d, p, q].some((number) => number.length > n.length))
      throw badRequest('error parsing asymmetric key: its numbers do not belong together')
    // Without an inverse they are not primes, which a later check reports.
    const coefficient = of.inverse(q, p) ?? Buffer.alloc(0)
    const exponents = [p, q].map((prime) => of.remainder(d, of.decrement(prime)))
    const numbers = [n, e, d, p, q, ...exponents, coefficient].map(writeNumber)
    const inner = write(asn1.sequence, writeNumber(Buffer.alloc(0)), ...numbers)
    return lend([...numbers, inner], () => ({ kind: 'pair', bytes: writePkcs8({ algorithm, inner }) }))
  })
}

/** Above 2. */
const isBig = (number: Buffer): boolean => number.length > 1 || (number[0] ?? 0) > 2

/** Wipes the secrets after their one use. */
function lend<T>(secrets: readonly (Buffer | undefined)[], use: () => T): T {
  try {
    return use()
  } finally {
    for (const secret of secrets) secret?.fill(0)
  }
}

/** 64 bytes of seed and public key, or the seed alone; without either the public key in base64. @throws ApiError 400 */
export function ed25519Key(
  algorithm: Ed25519,
  { pair: both, publicKey }: { pair: Buffer; publicKey: string },
): KeyBytes {
  if (both.length === 0) {
    return publicBytes({ kty: 'OKP', crv: algorithm.jwk, x: Buffer.from(publicKey, 'base64').toString('base64url') })
  }
  return lend([both], () => {
    const pair = ed25519Pair(both.subarray(0, 32))
    if (both.length !== 32 && !both.subarray(32).equals(pointOf(pair.publicKey))) {
      throw badRequest('error parsing asymmetric key: its public key is not that of its private key')
    }
    return pairBytes(pair)
  })
}

/** Owns and wipes the pair. */
function pairBytes(pair: Pair): KeyBytes {
  const bytes = writePkcs8(pair)
  wipePair(pair)
  return { kind: 'pair', bytes }
}

function publicBytes(jwk: Record<string, string>): KeyBytes {
  try {
    return {
      kind: 'public',
      bytes: createPublicKey({ format: 'jwk', key: jwk }).export({ format: 'der', type: 'spki' }),
    }
  } catch (error) {
    throw badRequest('error parsing asymmetric key: its public key is none', { cause: error })
  }
}

/** Padded with leading zeros. */
const coordinate = (number: Buffer = Buffer.alloc(0), bytes: number): string =>
  Buffer.concat([Buffer.alloc(Math.max(0, bytes - number.length)), number]).toString('base64url')
