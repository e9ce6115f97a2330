import { createHmac, createSecretKey, hash, type KeyObject, randomInt, timingSafeEqual } from 'node:crypto'
import { badRequest } from '../errors.ts'

/**
 * The text of a service token: `hvs.`, 25 random base62 characters (148 bits), and 7 that are a tag over all before
 * them. The tag lets a guess be refused on the spot, before a database or the token is asked; it proves nothing else.
 */
const PREFIX = 'hvs.'
const RANDOM_LENGTH = 25
const TAG_LENGTH = 7
const ACCESSOR_LENGTH = 24
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** What a presented text can be. */
export type Kind =
  /** One of ours with a right tag. */
  | 'ours'
  /** Claims to be ours and cannot be, or could never have been sent as a token. */
  | 'forged'
  /** A text that somebody may have chosen: only a look-up can tell. */
  | 'custom'

/** Makes credentials, and tells guesses from them. */
export interface GuessFilter {
  issue(): string
  screen(credential: string): Kind
}

/** @param key custody's guess-filter key */
export function guessFilter(key: Uint8Array): GuessFilter {
  // As a KeyObject an HMAC costs 2 µs instead of 13, and nothing prints it.
  const secret = createSecretKey(key)
  return {
    issue() {
      const body = PREFIX + randomText(RANDOM_LENGTH)
      return body + tag(secret, body)
    },
    screen(credential) {
      if (!credential.startsWith(PREFIX)) return isCustom(credential) ? 'custom' : 'forged'
      if (credential.length !== PREFIX.length + RANDOM_LENGTH + TAG_LENGTH) return 'forged'
      const expected = Buffer.from(tag(secret, credential.slice(0, -TAG_LENGTH)))
      const given = Buffer.from(credential.slice(-TAG_LENGTH))
      return given.length === expected.length && timingSafeEqual(given, expected) ? 'ours' : 'forged'
    },
  }
}

/** A new accessor: names a token to whoever may manage it, and cannot be used to sign in. */
export const newAccessor = (): string => randomText(ACCESSOR_LENGTH)

/** Whether a text can be an accessor. */
export const isAccessor = (text: string): boolean => /^[0-9A-Za-z]{24}$/.test(text)

/**
 * Checks a text that an operator chose as a credential.
 * @throws ApiError 400 when it could be taken for one of ours or cannot be sent in a header
 */
export function checkCustom(credential: string): void {
  if (credential.startsWith(PREFIX)) throw badRequest(`custom token id must not begin with "${PREFIX}"`)
  if (!isCustom(credential)) throw badRequest('custom token id must be 1 to 255 printable characters without spaces')
}

/** Under which a worker remembers a credential: never the text itself, and without a call into the token. */
export const fingerprint = (credential: string): string => hash('sha256', credential, 'base64')

const isCustom = (credential: string): boolean => /^[!-~]{1,255}$/.test(credential)

/** Letters and digits, 5.95 bits each. */
export const randomText = (length: number): string =>
  Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('')

function tag(key: KeyObject, body: string): string {
  let bits = createHmac('sha256', key).update(body).digest().readUIntBE(0, 5)
  let text = ''
  while (text.length < TAG_LENGTH) {
    text += alphabet.charAt(bits % alphabet.length)
    bits = Math.floor(bits / alphabet.length)
  }
  return text
}
