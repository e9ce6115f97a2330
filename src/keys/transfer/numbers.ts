import { createPublicKey } from 'node:crypto'
import { asn1, write, writeNumber } from '../../crypto/der.ts'
import { pointOf } from '../../crypto/edwards.ts'
import { inverse, toBytes } from '../../crypto/number.ts'
import { badRequest } from '../../errors.ts'
import type { Ec, Ed25519, Pair, Rsa } from '../algorithms/algorithm.ts'
import { ecPair } from '../algorithms/ecdsa.ts'
import { ed25519Pair } from '../algorithms/ed25519.ts'
import { wipePair, writePkcs8 } from '../making/pair.ts'
import type { KeyBytes } from './keyimport.ts'

/** Keys out of bare numbers, as the reference's backups hold them. All are checked again when they are brought into the token. */

/** Without d only the public half. @throws ApiError 400 */
export function ecKey(
  algorithm: Ec,
  { x, y, d }: { x?: bigint | undefined; y?: bigint | undefined; d?: bigint | undefined },
): KeyBytes {
  const { coordinateBytes } = algorithm.curve
  const coordinates = { x: coordinate(x, coordinateBytes), y: coordinate(y, coordinateBytes) }
  if (d === undefined) return publicBytes({ kty: 'EC', crv: algorithm.jwk, ...coordinates })
  const scalar = toBytes(d)
  const pair = ecPair(algorithm, scalar)
  scalar.fill(0)
  const own = pair.publicKey.export({ format: 'jwk' })
  if (own.x === coordinates.x && own.y === coordinates.y) return pairBytes(pair)
  wipePair(pair)
  throw badRequest('error parsing asymmetric key: its public key is not that of its private key')
}

interface RsaNumbers {
  readonly n?: bigint | undefined
  readonly e?: bigint | undefined
  readonly d?: bigint | undefined
  readonly p?: bigint | undefined
  readonly q?: bigint | undefined
}

/** Without d only the public half. @throws ApiError 400 */
export function rsaKey(algorithm: Rsa, { n, e, d, p, q }: RsaNumbers): KeyBytes {
  if (n === undefined || e === undefined) throw badRequest('error parsing asymmetric key: its modulus is missing')
  if (d === undefined)
    return publicBytes({ kty: 'RSA', n: toBytes(n).toString('base64url'), e: toBytes(e).toString('base64url') })
  if (p === undefined || q === undefined || p < 3n || q < 3n)
    throw badRequest('error parsing asymmetric key: its primes are missing')
  const numbers = [n, e, d, p, q, d % (p - 1n), d % (q - 1n), inverse(q % p, p)].map((number) =>
    writeNumber(toBytes(number)),
  )
  const inner = write(asn1.sequence, writeNumber(Buffer.alloc(0)), ...numbers)
  for (const number of numbers) number.fill(0)
  const bytes = writePkcs8({ algorithm, inner })
  inner.fill(0)
  return { kind: 'pair', bytes }
}

/** 64 bytes of seed and public key, or the seed alone; without either the public key in base64. @throws ApiError 400 */
export function ed25519Key(
  algorithm: Ed25519,
  { pair: both, publicKey }: { pair: Buffer; publicKey: string },
): KeyBytes {
  if (both.length === 0) {
    return publicBytes({ kty: 'OKP', crv: algorithm.jwk, x: Buffer.from(publicKey, 'base64').toString('base64url') })
  }
  const pair = ed25519Pair(both.subarray(0, 32))
  if (both.length !== 32 && !both.subarray(32).equals(pointOf(pair.publicKey))) {
    throw badRequest('error parsing asymmetric key: its public key is not that of its private key')
  }
  const bytes = pairBytes(pair)
  both.fill(0)
  return bytes
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

const coordinate = (number: bigint | undefined, bytes: number): string =>
  toBytes(number ?? 0n, bytes).toString('base64url')
