import { badRequest } from '../../errors.ts'
import { decodeOptional } from './base64.ts'

const nonceBytes = 12

/**
 * A nonce is checked wherever one is sent, and used by no key that exists yet: a caller's nonce under AES-GCM could
 * repeat, which gives the authentication key away.
 * @throws ApiError 400 unless it is base64 of 12 bytes
 */
export function checkNonce(nonce: string | undefined, warn: (text: string) => void): void {
  const bytes = decodeOptional('nonce', nonce)
  if (bytes === undefined) return
  if (bytes.length !== nonceBytes) {
    throw badRequest(`base64-decoded nonce must be ${nonceBytes} bytes long but given ${bytes.length} bytes`)
  }
  warn('the nonce was not used: this key makes its own')
}
