import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Handle } from '../hsm/handle.ts'
import type { Hsm } from '../hsm/hsm.ts'
import type { Algorithm } from './algorithms.ts'

/** The public half of a key pair as the token shows it. */
export async function readPublicKey(hsm: Hsm, handle: Handle, algorithm: Algorithm): Promise<KeyObject> {
  const seen: PublicAttributes =
    algorithm.kind === 'rsa'
      ? await hsm.attributes(handle, ['modulus', 'publicExponent'])
      : await hsm.attributes(handle, ['ecPoint'])
  return createPublicKey({ format: 'jwk', key: toJwk(algorithm, seen) })
}

interface PublicAttributes {
  readonly modulus?: Buffer | undefined
  readonly publicExponent?: Buffer | undefined
  readonly ecPoint?: Buffer | undefined
}

function toJwk(algorithm: Algorithm, { modulus, publicExponent, ecPoint }: PublicAttributes): JsonWebKey {
  if (algorithm.kind === 'rsa' && modulus !== undefined && publicExponent !== undefined) {
    return { kty: 'RSA', n: modulus.toString('base64url'), e: publicExponent.toString('base64url') }
  }
  if (algorithm.kind === 'ed25519' && ecPoint?.length === 32) {
    return { kty: 'OKP', crv: algorithm.jwk, x: ecPoint.toString('base64url') }
  }
  if (algorithm.kind === 'ec' && ecPoint?.length === 1 + 2 * algorithm.curve.coordinateBytes) {
    const [x, y] = [
      ecPoint.subarray(1, 1 + algorithm.curve.coordinateBytes),
      ecPoint.subarray(-algorithm.curve.coordinateBytes),
    ]
    return { kty: 'EC', crv: algorithm.jwk, x: x.toString('base64url'), y: y.toString('base64url') }
  }
  throw new Error(`the token shows no usable public key of a ${algorithm.name} pair`)
}

/** The DER that is stored, and the SHA-256 over it by which a public key is recognised. */
export function encodePublicKey(key: KeyObject): { spki: Buffer; fingerprint: Buffer } {
  const spki = key.export({ format: 'der', type: 'spki' })
  return { spki, fingerprint: createHash('sha256').update(spki).digest() }
}

export const decodePublicKey = (spki: Buffer): KeyObject => createPublicKey({ key: spki, format: 'der', type: 'spki' })

/** 04 ‖ X ‖ Y out of an EC key, for tokens that cannot work it out when they unwrap. */
export function ecPointOf(key: KeyObject): Buffer {
  const { x, y } = key.export({ format: 'jwk' })
  return Buffer.concat([Buffer.from([4]), Buffer.from(x ?? '', 'base64url'), Buffer.from(y ?? '', 'base64url')])
}
