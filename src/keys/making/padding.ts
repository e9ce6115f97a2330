import { secretBuffer } from '../../crypto/wiping.ts'
import type { Capabilities } from '../../hsm/capabilities.ts'
import { CKM } from '../../hsm/constants.ts'
import { mechanismName } from '../../hsm/mechanism.ts'

/**
 * SoftHSM refuses HMAC-SHA-384 and -512 with keys shorter than the hash. An HMAC key shorter than a hash's block is
 * filled with zeros to the block (RFC 2104 section 2), so that a secret under 64 bytes, filled to exactly 64, is the
 * same key for every SHA-2 and SHA-3: the smallest block among them is 64 bytes. (128 would be another key for
 * SHA-256.)
 */
export const paddedBytes = 64

/**
 * SoftHSM 2.6.1 unwraps a secret whose length is not a multiple of 8 together with the zeros that RFC 5649 padded it
 * with. Up to 64 bytes that is the same HMAC key; a longer one silently becomes another key. (The self-test tries it:
 * `wrap-exact-length`.)
 */
const needsExactLength = (sizeBytes: number): boolean => sizeBytes > paddedBytes && sizeBytes % 8 !== 0

/** A token's abilities with HMAC secrets. */
export type SecretCapabilities = Pick<Capabilities, 'supports' | 'shortestHmacKey'>

/**
 * Why an HMAC secret is in the server's memory: once, while it is `made`, or each time it is `loaded` into the token.
 */
export interface Exposure {
  readonly when: 'made' | 'loaded'
  readonly why: string
}

/** Why a new HMAC secret of that length cannot be kept out of the server's memory; undefined where it can. */
export function exposureOf(capabilities: SecretCapabilities, sizeBytes: number): Exposure | undefined {
  if (isFilledUp(capabilities, sizeBytes)) return { when: 'loaded', why: inexact }
  if (sizeBytes >= shortestOf(capabilities)) return undefined
  return { when: 'made', why: `${takes(CKM.SHA256_HMAC, shortestOf(capabilities))}, asked for ${sizeBytes}` }
}

/** Whether the token would unwrap a secret of that length as another key. */
export const isFilledUp = (capabilities: SecretCapabilities, sizeBytes: number): boolean =>
  needsExactLength(sizeBytes) && !capabilities.supports('wrap-exact-length')

export const inexact = 'the HSM unwraps secrets over 64 bytes only in multiples of 8 bytes'

/** The token's minimum key length of an HMAC, in words. @param type a CKM number */
export const takes = (type: number, bytes: number): string =>
  `${mechanismName(type)} in the HSM takes secrets of ${bytes} bytes or more`

/** Shorter new secrets are padded in memory, since they would only serve SHA-1 and SHA-224. */
export const shortestOf = (capabilities: SecretCapabilities): number =>
  capabilities.shortestHmacKey(CKM.SHA256_HMAC) ?? paddedBytes

/** The secret as it lies in the token. Longer secrets stay as they are: each hash shortens or fills them itself. */
export function pad(secret: Uint8Array): Buffer {
  const padded = secretBuffer(Math.max(secret.length, paddedBytes))
  padded.set(secret)
  return padded
}
