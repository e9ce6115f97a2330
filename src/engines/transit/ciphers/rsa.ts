import { badRequest } from '../../../errors.ts'
import type { Material } from '../../../keys/material.ts'
import type { MaybePromise } from '../../../route.ts'
import type { TransitContext } from '../context.ts'

/**
 * Refuses PKCS#1 v1.5, whose decryption failures leak the plaintext (Bleichenbacher 1998).
 * @throws ApiError 400 for anything but oaep
 */
export function checkPadding(scheme: string | undefined): void {
  if (scheme && scheme !== 'oaep') {
    throw badRequest(`padding_scheme ${JSON.stringify(scheme)} is not offered: RSA encryption uses oaep only`)
  }
}

/** @throws ApiError 400 when the plaintext is too long, or with associated data, which OAEP cannot authenticate */
export function encryptRsa(
  { rsaCipher }: TransitContext,
  key: Material,
  { plaintext, aad }: { readonly plaintext: Buffer; readonly aad: Buffer | undefined },
): Buffer {
  refuseAad(key, aad)
  return rsaCipher.encrypt(key, plaintext)
}

/** @throws ApiError 400 with one text for every ciphertext that does not decrypt */
export function decryptRsa(
  { rsaCipher }: TransitContext,
  key: Material,
  { ciphertext, aad }: { readonly ciphertext: Buffer; readonly aad: Buffer | undefined },
): MaybePromise<Buffer> {
  refuseAad(key, aad)
  return rsaCipher.decrypt(key, ciphertext)
}

function refuseAad({ algorithm }: Material, aad: Buffer | undefined): void {
  if (aad !== undefined) {
    throw badRequest(`'associated_data' provided for non-AEAD cipher suite ${algorithm.name}`)
  }
}
