import { isIP } from 'node:net'

/**
 * IP addresses and ranges as in certificates: 4 or 16 bytes, and twice as many with a mask (RFC 5280 section 4.2.1.10).
 */

/** The 4 or 16 bytes of an address; undefined when the text is not an address or has a zone. */
export function parseAddress(text: string): Buffer | undefined {
  const version = isIP(text)
  if (version === 4) return Buffer.from(text.split('.').map(Number))
  return version === 6 && !text.includes('%') ? parseLong(text) : undefined
}

function parseLong(text: string): Buffer {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text)
  const [, head = '', ...last] = dotted ?? []
  const [a = 0, b = 0, c = 0, d = 0] = last.map(Number)
  const plain = dotted === null ? text : `${head}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  const [left = '', right] = plain.split('::')
  const [before, after] = [groupsOf(left), groupsOf(right ?? '')]
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

const groupsOf = (text: string): number[] =>
  text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))

/** IPv6 addresses as in RFC 5952. @param address 4 or 16 bytes */
export function formatAddress(address: Uint8Array): string {
  if (address.length === 4) return address.join('.')
  const groups = Array.from(
    { length: 8 },
    (_, index) => ((address[2 * index] ?? 0) << 8) | (address[2 * index + 1] ?? 0),
  )
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (mapped) return `::ffff:${address.subarray(12).join('.')}`
  const { start, length } = longestZeros(groups)
  const texts = groups.map((group) => group.toString(16))
  return length < 2 ? texts.join(':') : `${texts.slice(0, start).join(':')}::${texts.slice(start + length).join(':')}`
}

function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let longest = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start > longest.length) longest = { start, length: end - start }
  }
  return longest
}

/**
 * The bytes of `address/bits`: the address without its host bits, then the mask; undefined when the text is not such a
 * range.
 */
export function parseRange(text: string): Buffer | undefined {
  const [, base = '', bits = ''] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const address = parseAddress(base)
  if (address === undefined || Number(bits) > 8 * address.length) return undefined
  const mask = maskOf(Number(bits), address.length)
  return Buffer.concat([address.map((octet, index) => octet & (mask[index] ?? 0)), mask])
}

const maskOf = (bits: number, length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => 0xff & ~(0xff >> Math.max(0, Math.min(8, bits - 8 * index)))))

/** `address/bits`; a mask that is not a prefix is written as an address. @param range 8 or 32 bytes */
export function formatRange(range: Uint8Array): string {
  const [address, mask] = halves(range)
  const bits = mask.reduce((sum, octet) => sum + ones(octet), 0)
  const suffix = maskOf(bits, mask.length).equals(mask) ? `${bits}` : formatAddress(mask)
  return `${formatAddress(address)}/${suffix}`
}

const ones = (octet: number): number => octet.toString(2).replaceAll('0', '').length

/** Whether an address lies in a range; false if one is IPv4 and the other IPv6. */
export function contains(range: Uint8Array, address: Uint8Array): boolean {
  const [base, mask] = halves(range)
  if (base.length !== address.length) return false
  return address.every((octet, index) => ((octet ^ (base[index] ?? 0)) & (mask[index] ?? 0)) === 0)
}

const halves = (range: Uint8Array): [Uint8Array, Uint8Array] => [
  range.subarray(0, range.length / 2),
  range.subarray(range.length / 2),
]
