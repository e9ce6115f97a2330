import { createCipheriv, createDecipheriv } from 'node:crypto'
import { withoutStackTraces } from '../../crypto/stacktraces.ts'
import { badRequest } from '../../errors.ts'
import type { Aead } from '../algorithms/algorithm.ts'

export const ivBytes = 12
export const tagBytes = 16

/** The input of decryption; `sealed` ends with the tag. */
export interface Sealing {
  readonly iv: Uint8Array
  readonly sealed: Uint8Array
  readonly aad?: Uint8Array | undefined
}

/** Authenticated encryption by the host's OpenSSL, for keys that are in memory anyway. @returns ciphertext and tag */
export function sealOnHost(
  aead: Aead,
  key: Uint8Array,
  iv: Uint8Array,
  plain: { readonly plaintext: Uint8Array; readonly aad?: Uint8Array | undefined },
): Buffer {
  // The one type for OpenSSL's three names: node:crypto's declarations know each name as another kind of cipher.
  const cipher = withoutStackTraces(() =>
    createCipheriv(aead.host as 'aes-256-gcm', key, iv, { authTagLength: tagBytes }),
  )
  if (plain.aad) cipher.setAAD(plain.aad)
  return Buffer.concat([cipher.update(plain.plaintext), cipher.final(), cipher.getAuthTag()])
}

/** @throws ApiError 400 with the type's one text for any failure */
export function openOnHost(aead: Aead, key: Uint8Array, { iv, sealed, aad }: Sealing): Buffer {
  const host = aead.host as 'aes-256-gcm'
  const decipher = withoutStackTraces(() => createDecipheriv(host, key, iv, { authTagLength: tagBytes }))
  if (aad) decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes))
  const plaintext = decipher.update(sealed.subarray(0, sealed.length - tagBytes))
  try {
    // Checks the tag; a stream cipher has no output left.
    decipher.final()
    return plaintext
  } catch (error) {
    plaintext.fill(0)
    throw badRequest(aead.failure, { cause: error })
  }
}

/** @throws ApiError 400 for what cannot be a ciphertext of the type */
export function checkSealing(aead: Aead, { iv, sealed }: Sealing): void {
  if (iv.length !== ivBytes || sealed.length < tagBytes) throw badRequest(aead.failure)
}
