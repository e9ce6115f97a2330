import { randomBytes } from 'node:crypto'

export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Bytes from here on would favour some characters. */
const unfair = 256 - (256 % base62.length)
/** Characters of a secret: more than 256 bits. */
const secretLength = 43

/** Letters and digits, all equally likely: 5.95 bits each. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    const bytes = randomBytes(length - text.length)
    for (const byte of bytes) if (byte < unfair) text += base62.charAt(byte % base62.length)
    bytes.fill(0)
  }
  return text
}

/** A secret of 256 bits that a person keeps. Base64url could begin with a dash, which command lines take for an option. */
export const randomSecret = (): string => randomText(secretLength)
