/**
 * Serial numbers (RFC 5280 4.1.2.2): two hexadecimal digits of lower case for each octet of the magnitude. In this form they
 * sort as their octets do, and as the hyphenated form of the API's lists.
 */

const longestOctets = 20
const written = /^[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2})*$/

/** A serial as clients write it, octets separated by `:` or `-`; undefined for any other text, which no certificate has. */
export function parseSerial(text: string): string | undefined {
  if (!written.test(text)) return undefined
  const serial = text.replaceAll(/[:-]/g, '').toLowerCase()
  return serial.length > 2 * longestOctets ? undefined : serial
}

/** A serial as answers show it: `1a:2b:3c`. */
export const formatSerial = (serial: string): string => serial.replaceAll(/..(?=.)/g, '$&:')
