import { badRequest } from '../../../errors.ts'
import { ivBytes } from '../../../keys/use/hostcipher.ts'

/**
 * A caller's nonce could repeat, which under AES-GCM reveals the authentication key. Only convergent version 1 uses it,
 * since its ciphertexts depend on it.
 * @throws ApiError 400 unless absent or 12 bytes
 */
export function ignoreNonce(nonce: Buffer | undefined, warn: (text: string) => void): void {
  if (nonce === undefined) return
  if (nonce.length !== ivBytes) {
    throw badRequest(`base64-decoded nonce must be ${ivBytes} bytes long but given ${nonce.length} bytes`)
  }
  warn('the nonce was not used: this key makes its own')
}

/** The nonce of convergent version 1. @throws ApiError 400 when it is missing or not 12 bytes */
export function requireNonce(nonce: Buffer | undefined): Buffer {
  if (nonce?.length === ivBytes) return nonce
  throw badRequest(`base64-decoded nonce must be ${ivBytes} bytes long when using convergent encryption with this key`)
}
