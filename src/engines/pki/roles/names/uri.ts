import { matchesGlob } from '../glob.ts'
import type { Refusal } from '../refusal.ts'
import type { Origin } from './ip.ts'
import { shorten } from './text.ts'

/** An absolute URI in the characters of RFC 3986: a scheme and something after it. */
const uri = /^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=%-]+$/
const badEscape = /%(?![0-9A-Fa-f]{2})/

/** Whether a text can be a uniformResourceIdentifier (RFC 5280, 4.2.1.6). */
const isUri = (text: string): boolean => uri.test(text) && !badEscape.test(text)

/** @param allowed globs, templates resolved */
export function refusalOfUri(text: string, allowed: readonly string[], origin: Origin): Refusal | undefined {
  if (allowed.length === 0) {
    return {
      text: `URI Subject Alternative Names are not allowed in this role, but were provided via ${origin}`,
      rule: 'no URI is allowed',
      setting: 'allowed_uri_sans',
    }
  }
  if (!isUri(text)) {
    return {
      text: `the provided URI Subject Alternative Name ${JSON.stringify(shorten(text))} is not a valid URI`,
      rule: 'a URI must be absolute and in ASCII (RFC 3986)',
    }
  }
  if (allowed.some((glob) => matchesGlob(glob, text))) return undefined
  return {
    text: `URI Subject Alternative Names were provided via ${origin} which are not valid for this role`,
    rule: `${shorten(text)} matches nothing in allowed_uri_sans`,
    setting: 'allowed_uri_sans',
  }
}
