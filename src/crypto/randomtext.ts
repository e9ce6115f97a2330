import { randomInt } from 'node:crypto'

export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Characters of a secret: more than 256 bits. */
const secretLength = 43

/** Letters and digits, 5.95 bits each. */
export const randomText = (length: number): string =>
  Array.from({ length }, () => base62.charAt(randomInt(base62.length))).join('')

/** A secret of 256 bits that a person keeps. Base64url could begin with a dash, which command lines take for an option. */
export const randomSecret = (): string => randomText(secretLength)
