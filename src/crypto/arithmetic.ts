import { secretBuffer } from './wiping.ts'

/** Little-endian, without zeros at the top. */
type Limbs = Uint16Array<ArrayBuffer>

const limbBits = 16
const base = 2 ** limbBits
/** Decimal digits that fit into one limb. */
const digitsAtOnce = 4

/**
 * Arithmetic with the numbers of private keys, as big-endian bytes. A BigInt cannot be wiped: here every number,
 * results included, is in memory that disposing fills with zeros. Nothing here takes constant time.
 */
export class Arithmetic implements Disposable {
  readonly #made: { fill(value: 0): unknown }[] = []

  product(a: Uint8Array, b: Uint8Array): Buffer {
    return this.#write(this.#multiply(this.#read(a), this.#read(b)))
  }

  /** @param modulus not zero */
  remainder(value: Uint8Array, modulus: Uint8Array): Buffer {
    return this.#write(this.#divide(this.#read(value), this.#read(modulus)).remainder)
  }

  /** value − 1 @param value not zero */
  decrement(value: Uint8Array): Buffer {
    return this.#write(this.#subtract(this.#read(value), this.#read(one)))
  }

  /** Extended Euclid. @returns undefined if the value has no inverse @param modulus above 1 */
  inverse(value: Uint8Array, modulus: Uint8Array): Buffer | undefined {
    const m = this.#read(modulus)
    let [high, low] = [m, this.#divide(this.#read(value), m).remainder]
    // The coefficients of the value alternate in sign.
    let [before, now] = [this.#read(zero), this.#read(one)]
    let negative = false
    while (low.length > 0) {
      if (low.length === 1 && low[0] === 1) return this.#write(negative ? this.#subtract(m, now) : now)
      const { quotient, remainder } = this.#divide(high, low)
      ;[before, now] = [now, this.#add(before, this.#multiply(quotient, now))]
      ;[high, low] = [low, remainder]
      negative = !negative
    }
    return undefined
  }

  /** @param digits decimal */
  decimal(digits: string): Buffer {
    const limbs = this.#limbs(Math.ceil(digits.length / digitsAtOnce))
    for (let at = digits.length % digitsAtOnce; at <= digits.length; at += digitsAtOnce) {
      const some = digits.slice(Math.max(0, at - digitsAtOnce), at)
      let carry = Number(some)
      for (const [index, limb] of limbs.entries()) {
        const sum = limb * 10 ** some.length + carry
        limbs[index] = sum % base
        carry = Math.floor(sum / base)
      }
    }
    return this.#write(trimmed(limbs))
  }

  [Symbol.dispose](): void {
    for (const number of this.#made) number.fill(0)
  }

  #limbs(length: number): Limbs {
    // Not `new Uint16Array(length)`: short ones would be in V8's heap (wiping.ts).
    const limbs = new Uint16Array(new ArrayBuffer(2 * length))
    this.#made.push(limbs)
    return limbs
  }

  #read(bytes: Uint8Array): Limbs {
    const limbs = this.#limbs(Math.ceil(bytes.length / 2))
    for (const [at, byte] of bytes.entries()) {
      const place = bytes.length - 1 - at
      limbs[place >> 1] = (limbs[place >> 1] ?? 0) | (byte << (8 * (place & 1)))
    }
    return trimmed(limbs)
  }

  #write(limbs: Limbs): Buffer {
    const top = limbs.at(-1) ?? 0
    const bytes = secretBuffer(2 * limbs.length - (top > 0 && top < 0x100 ? 1 : 0))
    for (let place = 0; place < bytes.length; place++) {
      bytes[bytes.length - 1 - place] = (limbs[place >> 1] ?? 0) >> (8 * (place & 1))
    }
    this.#made.push(bytes)
    return bytes
  }

  #add(a: Limbs, b: Limbs): Limbs {
    const sum = this.#limbs(Math.max(a.length, b.length) + 1)
    let carry = 0
    for (let at = 0; at < sum.length; at++) {
      carry += (a[at] ?? 0) + (b[at] ?? 0)
      sum[at] = carry
      carry = Math.floor(carry / base)
    }
    return trimmed(sum)
  }

  /** @param b at most a */
  #subtract(a: Limbs, b: Limbs): Limbs {
    const difference = this.#limbs(a.length)
    let borrow = 0
    for (let at = 0; at < a.length; at++) {
      borrow += (a[at] ?? 0) - (b[at] ?? 0)
      difference[at] = borrow
      borrow = Math.floor(borrow / base)
    }
    return trimmed(difference)
  }

  #multiply(a: Limbs, b: Limbs): Limbs {
    const product = this.#limbs(a.length + b.length)
    for (let row = 0; row < a.length; row++) {
      let carry = 0
      for (let at = 0; at < b.length; at++) {
        carry += (a[row] ?? 0) * (b[at] ?? 0) + (product[row + at] ?? 0)
        product[row + at] = carry
        carry = Math.floor(carry / base)
      }
      product[row + b.length] = carry
    }
    return trimmed(product)
  }

  /** Knuth, The Art of Computer Programming 4.3.1, algorithm D. */
  #divide(dividend: Limbs, divisor: Limbs): { quotient: Limbs; remainder: Limbs } {
    const length = divisor.length
    if (dividend.length < length) return { quotient: this.#limbs(0), remainder: dividend }
    const shift = Math.clz32(divisor.at(-1) ?? 0) - limbBits
    const rest = this.#shifted(dividend, shift)
    const by = this.#shifted(divisor, shift)
    const [first, second] = [by[length - 1] ?? 0, by[length - 2] ?? 0]
    const quotient = this.#limbs(dividend.length - length + 1)
    for (let at = quotient.length - 1; at >= 0; at--) {
      const [high, low, next] = [rest[at + length] ?? 0, rest[at + length - 1] ?? 0, rest[at + length - 2] ?? 0]
      let guess = Math.floor((high * base + low) / first)
      let left = high * base + low - guess * first
      while (left < base && (guess >= base || guess * second > left * base + next)) {
        guess--
        left += first
      }
      if (takeAway(rest, by, guess, at, length) < 0) {
        guess--
        takeAway(rest, by, -1, at, length)
      }
      quotient[at] = guess
    }
    return { quotient: trimmed(quotient), remainder: this.#unshifted(rest, shift) }
  }

  /** One limb longer, for the bits shifted out. */
  #shifted(limbs: Limbs, bits: number): Limbs {
    const shifted = this.#limbs(limbs.length + 1)
    for (let at = 0; at < shifted.length; at++) {
      shifted[at] = ((limbs[at] ?? 0) << bits) | ((limbs[at - 1] ?? 0) >> (limbBits - bits))
    }
    return shifted
  }

  #unshifted(limbs: Limbs, bits: number): Limbs {
    const back = this.#limbs(limbs.length)
    for (let at = 0; at < back.length; at++) {
      back[at] = ((limbs[at] ?? 0) >> bits) | ((limbs[at + 1] ?? 0) << (limbBits - bits))
    }
    return trimmed(back)
  }
}

const zero = new Uint8Array(0)
const one = Uint8Array.of(1)

function trimmed(limbs: Limbs): Limbs {
  let length = limbs.length
  while (length > 0 && limbs[length - 1] === 0) length--
  return limbs.subarray(0, length)
}

/**
 * rest −= times · by · base^at, over `length` limbs and the one above. @returns below zero when too much was subtracted
 */
function takeAway(rest: Limbs, by: Limbs, times: number, at: number, length: number): number {
  let borrow = 0
  for (let index = 0; index <= length; index++) {
    borrow += (rest[at + index] ?? 0) - times * (index < length ? (by[index] ?? 0) : 0)
    rest[at + index] = borrow
    borrow = Math.floor(borrow / base)
  }
  return borrow
}
