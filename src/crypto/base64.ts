import { badRequest } from '../errors.ts'

const outside = /[^A-Za-z0-9+/=]/

/** Makes the text of a refusal; `fault` is the reference's `illegal base64 data at input byte N`. */
type Refusal = (fault: string) => string

/**
 * Decodes standard padded base64 strictly (RFC 4648 section 4); CR and LF are skipped, as the reference does.
 * @throws ApiError 400 with the refusal's text
 */
export function decodeBase64(text: string, refusal: Refusal = (fault) => fault): Buffer {
  if (isAscii(text) && !text.includes('-') && !text.includes('_')) {
    const bytes = Buffer.from(text, 'base64')
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
    // Of ASCII Node takes the two characters of base64url too, and skips others; the length proves that none was
    // skipped.
    if (bytes.length === (text.length / 4) * 3 - padding) return bytes
    // What is refused may be a secret all the same.
    bytes.fill(0)
  }
  const fault = firstFault(Buffer.from(text))
  if (fault !== undefined) throw badRequest(refusal(`illegal base64 data at input byte ${fault}`))
  return Buffer.from(text.replace(/[\r\n]/g, ''), 'base64')
}

/** Decodes the `input` of hash, hmac, sign and verify. @throws ApiError 400 */
export const decodeInput = (text: string): Buffer =>
  decodeBase64(text, (fault) => `unable to decode input as base64: ${fault}`)

/** Decodes any other field. @throws ApiError 400 naming it */
export const decodeField = (name: string, text: string): Buffer =>
  decodeBase64(text, (fault) => `failed to base64-decode ${name}: ${fault}`)

/** Decodes an optional field; empty is absent. @throws ApiError 400 naming it */
export const decodeOptional = (name: string, text: string | undefined): Buffer | undefined =>
  text ? decodeField(name, text) : undefined

/**
 * Only ASCII takes as many bytes in UTF-8 as in UTF-16 it takes units. A regular expression takes eight times as long.
 */
const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

/** The offset at which Go's encoding/base64 stops, shown in the refusal; undefined when it accepts the text. */
function firstFault(source: Buffer): number | undefined {
  const isBreak = (at: number) => source[at] === 10 || source[at] === 13
  let at = 0
  for (;;) {
    for (let digit = 0; digit < 4; digit++) {
      while (isBreak(at)) at++
      if (at === source.length) return digit === 0 ? undefined : at - digit
      const byte = source[at++] ?? 0
      if (byte !== 61) {
        if (outside.test(String.fromCharCode(byte))) return at - 1
        continue
      }
      if (digit < 2) return at - 1
      if (digit === 2) {
        while (isBreak(at)) at++
        if (at === source.length) return source.length
        if (source[at] !== 61) return at
        at++
      }
      while (isBreak(at)) at++
      return at < source.length ? at : undefined
    }
  }
}
