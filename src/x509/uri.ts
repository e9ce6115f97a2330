import { parseAddress } from './extensions/address.ts'

/** URIs of uniformResourceIdentifier (RFC 5280 section 4.2.1.6, by the grammar of RFC 3986). */

const plain = "A-Za-z0-9._~!$&'()*+,;=%-"
const host = `([${plain}]+|\\[[0-9A-Fa-f:.]+\\])`
const withHost = `//(?:[${plain}:]*@)?${host}(?::\\d*)?(?:/[${plain}:@/]*)?(?:\\?[${plain}:@/?]*)?`
const withoutHost = `(?!//)[${plain}:@/?]+`
const uri = new RegExp(`^[A-Za-z][A-Za-z0-9+.-]*:(?:${withHost}|${withoutHost})(?:#[${plain}:@/?]*)?$`)
const badEscape = /%(?![0-9A-Fa-f]{2})/

/**
 * Whether a text is an absolute URI: a scheme and something after it, in ASCII. After `//` RFC 5280 wants a host, which
 * `file:///x` does not have; any name serves, because trust domains of SPIFFE need not be domains of the DNS.
 */
export function isUri(text: string): boolean {
  const match = uri.exec(text)
  if (match === null || badEscape.test(text)) return false
  const [, name = ''] = match
  return !name.startsWith('[') || isLong(name.slice(1, -1))
}

/** In brackets is an IPv6 address. */
const isLong = (address: string): boolean => address.includes(':') && parseAddress(address) !== undefined
