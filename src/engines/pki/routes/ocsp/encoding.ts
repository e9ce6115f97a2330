/** Characters of an encoded request: a longer text has more bytes than a request may have. */
const longestText = 2732
/** A percent-encoded character takes three. */
const longestEncoded = 3 * longestText
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/**
 * The request in a path (RFC 6960 appendix A.1): base64 with either alphabet, padded or not. Percent-encoding was
 * already undone once; clients that encode twice are understood too.
 * @returns undefined for any other text
 */
export function decodeRequest(text: string): Buffer | undefined {
  const plain = text.length > longestEncoded ? undefined : decodePercent(text)
  if (plain === undefined || plain.length > longestText || !base64.test(plain)) return undefined
  const digits = plain.replace(/=+$/, '')
  return digits.length % 4 === 1 ? undefined : Buffer.from(digits, 'base64url')
}

function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
