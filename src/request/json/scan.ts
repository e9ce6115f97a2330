export const quote = 0x22
export const zero = 0x30
const nine = 0x39
const backslash = 0x5c
/** The length from which a native search for the end of a string pays. */
const longStringBytes = 32

export const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= zero && byte <= nine

/** Where a run of digits ends. */
export function endOfDigits(body: Uint8Array, from: number): number {
  for (let at = from; at < body.length; at++) {
    const byte = body[at] ?? 0
    if (byte < zero || byte > nine) return at
  }
  return body.length
}

/** The position of the quote that ends a string, or the end of the body. */
export function endOfString(body: Uint8Array, from: number): number {
  let at = from
  for (const near = Math.min(body.length, from + longStringBytes); at < near; at++) {
    if (body[at] === backslash) at++
    else if (body[at] === quote) return at
  }
  // The last step may have been over a backslash and the character it escapes.
  for (let end = body.indexOf(quote, at); end >= 0; end = body.indexOf(quote, end + 1)) {
    let before = end
    while (before > at && body[before - 1] === backslash) before--
    if ((end - before) % 2 === 0) return end
  }
  return body.length
}
