import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import { base62, randomText } from '../crypto/randomtext.ts'
import { badRequest } from '../errors.ts'

/**
 * The text of a service token: `hvs.`, 25 random base62 characters (148 bits), and a tag of 7 over the text before it.
 * The tag lets a guess be refused at once, without a query to database or HSM; it proves nothing else.
 */
const prefix = 'hvs.'
const randomLength = 25
const tagLength = 7
const accessorLength = 24
/** Characters, each of one byte. */
export const credentialLength = prefix.length + randomLength + tagLength

/** The kinds of texts that callers present. */
export type CredentialKind =
  /** One of ours, with a valid tag. */
  | 'ours'
  /** One with our prefix and no valid tag, or one that cannot be sent in a header. */
  | 'forged'
  /** A text that an operator may have chosen: only a look-up can tell. */
  | 'custom'

/** Makes credentials, and tells them from guesses. */
export interface GuessFilter {
  issue(): string
  screen(credential: string): CredentialKind
}

/** @param key custody's guess-filter key */
export function guessFilter(key: Uint8Array): GuessFilter {
  // As a KeyObject an HMAC costs 2 µs instead of 13, and nothing prints it.
  const secret = createSecretKey(key)
  return {
    issue() {
      const body = prefix + randomText(randomLength)
      return body + tag(secret, body)
    },
    screen(credential) {
      if (!credential.startsWith(prefix)) return isCustom(credential) ? 'custom' : 'forged'
      if (credential.length !== credentialLength) return 'forged'
      const expected = Buffer.from(tag(secret, credential.slice(0, -tagLength)))
      const presented = Buffer.from(credential.slice(-tagLength))
      return presented.length === expected.length && timingSafeEqual(presented, expected) ? 'ours' : 'forged'
    },
  }
}

/** A new accessor: it identifies a token to an operator, and cannot be used to authenticate. */
export const newAccessor = (): string => randomText(accessorLength)

/** Whether a text can be an accessor. */
export const isAccessor = (text: string): boolean => /^[0-9A-Za-z]{24}$/.test(text)

/**
 * Checks a credential chosen by an operator.
 * @throws ApiError 400 when it could be mistaken for one of ours or cannot be sent in a header
 */
export function checkCustom(credential: string): void {
  if (credential.startsWith(prefix)) throw badRequest(`custom token id must not begin with "${prefix}"`)
  if (!isCustom(credential)) throw badRequest('custom token id must be 1 to 255 printable characters without spaces')
}

/** The key under which a worker caches a credential: never the text itself, and without a call into the HSM. */
export const fingerprint = (credential: string): string => hash('sha256', credential, 'base64')

const isCustom = (credential: string): boolean => /^[!-~]{1,255}$/.test(credential)

function tag(key: KeyObject, body: string): string {
  let bits = createHmac('sha256', key).update(body).digest().readUIntBE(0, 5)
  let text = ''
  while (text.length < tagLength) {
    text += base62.charAt(bits % base62.length)
    bits = Math.floor(bits / base62.length)
  }
  return text
}
