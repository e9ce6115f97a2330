import punycode from 'punycode/punycode.js'

const maxLabel = 63
const maxName = 253
/** A host name that needs no conversion, as nearly all do. */
const plain = /^(?!.*xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i
/** One label in ASCII. */
const label = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$/
const wildcardLabel = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)?\*(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)?$/
/**
 * Characters that no Unicode label contains: dots of other scripts, blanks, and characters that are invisible or
 * unassigned (RFC 5892, section 2.6).
 */
const foreign = /[\u3002\uff0e\uff61\p{C}\p{Z}]/u
const ascii = /^\p{ASCII}*$/u

/**
 * A name with its labels in ASCII (RFC 5891, without folding case: `Bücher` is `xn--Bcher-kva`). The characters of
 * labels already in ASCII are not checked.
 * @returns undefined if the name is too long, or a label is empty, too long or cannot be converted
 */
export function toAscii(name: string): string | undefined {
  if (name.length > maxName) return undefined
  const labels: string[] = []
  for (const part of name.split('.')) {
    const converted = labelToAscii(part)
    if (converted === undefined || converted === '' || converted.length > maxLabel) return undefined
    labels.push(converted)
  }
  const converted = labels.join('.')
  return converted.length > maxName ? undefined : converted
}

function labelToAscii(part: string): string | undefined {
  if (part.length > maxLabel) return undefined
  if (ascii.test(part)) return /^xn--/i.test(part) && !isALabel(part) ? undefined : part
  if (!part.isWellFormed() || foreign.test(part) || part.normalize('NFC') !== part) return undefined
  return `xn--${punycode.encode(part)}`
}

/** Whether a label that begins with `xn--` is the ASCII form of exactly one label. */
function isALabel(part: string): boolean {
  try {
    const decoded = punycode.decode(part.slice(4))
    return !ascii.test(decoded) && labelToAscii(decoded)?.toLowerCase() === part.toLowerCase()
  } catch {
    return false
  }
}

/** Whether a name is a host name once its labels are in ASCII: letters, digits, and hyphens inside (RFC 1123, 2.1). */
export function isHostname(name: string): boolean {
  if (name.length <= maxName && plain.test(name)) return true
  return toAscii(name)?.split('.').every(isLabel) ?? false
}

/** Whether the leftmost label of a wildcard is `*`, `*x`, `x*` or `x*y` (RFC 6125, 6.4.3). */
export const isWildcardLabel = (text: string): boolean => text.length <= maxLabel && wildcardLabel.test(text)

/**
 * The dNSName form of a name.
 * @returns undefined when it is neither a host name nor a wildcard of one
 */
export function dnsNameOf(name: string): string | undefined {
  if (name.length <= maxName && plain.test(name)) return name
  const converted = toAscii(name)
  const [first = '', ...rest] = converted?.split('.') ?? []
  return (isLabel(first) || isWildcardLabel(first)) && rest.every(isLabel) ? converted : undefined
}

const isLabel = (text: string): boolean => label.test(text)
