import { hashes } from '../../../crypto/hashes.ts'
import type { SaltLength } from '../../../crypto/pss.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer, raw, text, wholeBody } from '../../../field.ts'
import type { Scheme } from '../../../keys/algorithms/signature.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { Material } from '../../../keys/material.ts'
import type { Approval } from '../../../keys/use/approval.ts'
import { managedType } from '../ring/managedtype.ts'
import type { Item } from './items.ts'

/** The fields that sign and verify share. */
export const schemeFields = {
  input: text({ about: 'The bytes to sign, in base64; may be empty.', longest: wholeBody }),
  context: text({ about: 'Derivation context of derived keys, in base64.', longest: wholeBody }),
  hash_algorithm: text({
    about: 'sha1, sha2-224, -256, -384, -512, sha3-224, -256, -384, -512 or none; sha2-256 when absent.',
    aliases: ['algorithm'],
  }),
  prehashed: boolean({ about: 'Whether the input is the digest already.' }),
  signature_algorithm: text({ about: 'For RSA: pss (default) or pkcs1v15.' }),
  marshaling_algorithm: text({ about: 'For ECDSA: asn1 (default) or jws.' }),
  salt_length: text({ about: 'For RSA-PSS: auto (default), hash, or a number of bytes.' }),
  batch_input: raw({ about: 'Items with the same fields.' }),
  partial_failure_response_code: integer({ about: 'Status when some items of a batch fail; 200 when absent.' }),
}

const schemeShape = {
  hash_algorithm: 'text',
  prehashed: 'boolean',
  signature_algorithm: 'text',
  marshaling_algorithm: 'text',
  salt_length: 'text',
} as const

/** The same fields in the items of a batch. */
export const schemeReading = {
  shape: { ...schemeShape, input: 'text', context: 'text', reference: 'text' },
  aliases: { hash_algorithm: 'algorithm' },
  shared: ['hash_algorithm', 'prehashed', 'signature_algorithm', 'marshaling_algorithm', 'salt_length'],
} as const

/**
 * The scheme of a signature; each key type uses only the parts that concern it.
 * @param urlHash the hash of the URL, which takes precedence over the body
 * @param type of the key
 * @throws ApiError 400 that names the wrong field
 */
export function readScheme(input: Item<typeof schemeShape>, urlHash: string | undefined, type: string): Scheme {
  const name = hashNameOf(input, urlHash)
  const hash = hashes.get(name)
  if (hash === undefined && name !== 'none') throw badRequest(`invalid hash algorithm "${name}"`)
  const prehashed = input.prehashed ?? false
  const padding = input.signature_algorithm || 'pss'
  if (hash === undefined && !(prehashed && padding === 'pkcs1v15') && !signsWholeInputs(type)) {
    throw badRequest('hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15')
  }
  const marshaling = input.marshaling_algorithm || 'asn1'
  if (marshaling !== 'asn1' && marshaling !== 'jws') throw badRequest(`invalid marshaling type "${marshaling}"`)
  return { hash, prehashed, padding, marshaling, saltLength: readSaltLength(input.salt_length || 'auto') }
}

/** Whether keys of the type hash the input themselves, so that no hash of the request concerns them. */
const signsWholeInputs = (type: string): boolean =>
  type !== managedType && algorithmOf(type).signature?.hashes === false

/** The hash of the URL, else of the body, else sha2-256. */
export const hashNameOf = (input: { readonly hash_algorithm?: string | undefined }, urlHash?: string): string =>
  urlHash ?? (input.hash_algorithm || 'sha2-256')

/** `auto`, `hash` or a number; 0 and -1 are Go's constants for the two words. */
function readSaltLength(text: string): SaltLength {
  const word = text.toLowerCase()
  if (word === 'auto' || word === 'hash') return word
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`salt length neither 'auto', 'hash', nor an int: ${text}`)
  const length = Number(text)
  if (length < -1) throw badRequest(`salt length is invalid: ${text}`)
  if (length === 0) return 'auto'
  return length === -1 ? 'hash' : length
}

/** Warns of a key or hash that FIPS mode does not approve; a type that signs whole inputs ignores the hash. */
export function warnOfScheme(
  { approval }: { readonly approval: Approval },
  { algorithm }: Material,
  { hash }: Scheme,
  warn: (text: string) => void,
): void {
  approval.warn(warn, algorithm, algorithm.signature?.hashes ? hash : undefined)
}
