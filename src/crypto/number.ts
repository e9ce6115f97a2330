/**
 * Big integers for public numbers: a BigInt cannot be wiped (arithmetic.ts is for secret ones), and nothing here takes
 * constant time.
 */

/** The residue between 0 and the modulus. */
export const modulo = (value: bigint, modulus: bigint): bigint => ((value % modulus) + modulus) % modulus

/** Extended Euclid; the modulus is prime and the value not a multiple of it. */
export function inverse(value: bigint, modulus: bigint): bigint {
  let [low, high] = [modulo(value, modulus), modulus]
  let [x, y] = [1n, 0n]
  while (low > 1n) {
    const quotient = high / low
    ;[low, high] = [high - quotient * low, low]
    ;[x, y] = [y - quotient * x, x]
  }
  return modulo(x, modulus)
}

/** base^exponent, by squaring. */
export function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, modulo(base, modulus)]
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = modulo(result * square, modulus)
    square = modulo(square * square, modulus)
  }
  return result
}

/** Big-endian; an empty input is zero. */
export const toNumber = (bytes: Uint8Array): bigint =>
  BigInt(`0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex') || '0'}`)

/** Big-endian, padded with leading zeros to `bytes`; without it in the shortest form, in which zero is empty. */
export function toBytes(value: bigint, bytes = 0): Buffer {
  const hex = value === 0n ? '' : value.toString(16)
  return Buffer.from(hex.padStart(Math.max(2 * bytes, hex.length + (hex.length % 2)), '0'), 'hex')
}
