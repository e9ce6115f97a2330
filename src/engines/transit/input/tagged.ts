import { badRequest } from '../../../errors.ts'

/** `vault:vN:payload`, the form of ciphertexts, signatures and HMACs; N is the key version that made them. */
export interface Tagged {
  readonly version: number
  readonly payload: string
}

const prefix = 'vault:v'

/** Joins `vault:vN:payload`. */
export const tag = (version: number, payload: string): string => `${prefix}${version}:${payload}`

/**
 * Splits `vault:vN:payload`. Version 0 of a ciphertext means 1, as in the reference.
 * @param what the name used in refusals
 * @throws ApiError 400 that says which part is wrong
 */
export function untag(text: string, what: 'ciphertext' | 'signature' | 'HMAC'): Tagged {
  if (!text.startsWith(prefix)) {
    throw badRequest(what === 'HMAC' ? 'invalid HMAC to verify: no prefix' : `invalid ${what}: no prefix`)
  }
  const colon = text.indexOf(':', prefix.length)
  if (colon < 0) throw badRequest(`invalid ${what}: wrong number of fields`)
  const digits = text.slice(prefix.length, colon)
  if (!/^\d{1,10}$/.test(digits)) throw badRequest(`invalid ${what}: version number could not be decoded`)
  const version = Number(digits)
  return { version: what === 'ciphertext' ? Math.max(1, version) : version, payload: text.slice(colon + 1) }
}
