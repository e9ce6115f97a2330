import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Arithmetic } from '../../src/crypto/arithmetic.ts'
import { toBytes, toNumber } from '../../src/crypto/number.ts'

/**
 * Numbers of any length, and those with long runs of ones or zeros, where a guessed digit of a quotient is often wrong.
 */
const number = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 1100n }),
  fc.bigInt({ min: 0n, max: 2n ** 40n }),
  fc
    .array(fc.constantFrom(0, 1, 0x7fff, 0x8000, 0xfffe, 0xffff), { maxLength: 12 })
    .map((limbs) => limbs.reduce((whole, limb) => whole * 0x10000n + BigInt(limb), 0n)),
)
const positive = number.map((value) => value + 1n)

/** What BigInt gives must come out, as short as can be. */
function expectSame(work: (arithmetic: Arithmetic) => Buffer | undefined, expected: bigint): void {
  using arithmetic = new Arithmetic()
  expect(work(arithmetic)?.toString('hex')).toBe(toBytes(expected).toString('hex'))
}

function divisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : divisor(b, a % b)
}

describe('arithmetic in buffers is that of BigInt:', () => {
  const runs = { numRuns: 2000 }

  test('products', () =>
    fc.assert(
      fc.property(number, number, (a, b) => expectSame((of) => of.product(toBytes(a), toBytes(b)), a * b)),
      runs,
    ))

  test('remainders', () =>
    fc.assert(
      fc.property(number, positive, (a, m) => expectSame((of) => of.remainder(toBytes(a), toBytes(m)), a % m)),
      runs,
    ))

  test('a divisor and its multiples, one more and one less', () =>
    fc.assert(
      fc.property(number, positive, fc.constantFrom(-1n, 0n, 1n), (a, m, near) => {
        const value = a * m + near
        if (value >= 0n) expectSame((of) => of.remainder(toBytes(value), toBytes(m)), value % m)
      }),
      runs,
    ))

  test('one less', () =>
    fc.assert(
      fc.property(positive, (a) => expectSame((of) => of.decrement(toBytes(a)), a - 1n)),
      runs,
    ))

  test('inverses, where there are any', () =>
    fc.assert(
      fc.property(number, positive, (a, before) => {
        const m = before + 1n
        using arithmetic = new Arithmetic()
        const inverse = arithmetic.inverse(toBytes(a), toBytes(m))
        expect(inverse === undefined).toBe(divisor(a, m) !== 1n)
        const found = toNumber(inverse ?? Buffer.alloc(0))
        expect(found < m).toBe(true)
        if (inverse) expect((found * a) % m).toBe(1n)
      }),
      { numRuns: 500 },
    ))

  test('decimal digits', () =>
    fc.assert(
      fc.property(number, fc.nat(9), (a, zeros) => expectSame((of) => of.decimal(`${'0'.repeat(zeros)}${a}`), a)),
      runs,
    ))
})

test('nothing of the numbers or of the results is left when it is disposed', () => {
  const results: Buffer[] = []
  {
    using arithmetic = new Arithmetic()
    const [a, b] = [Buffer.alloc(40, 0xa5), Buffer.alloc(24, 0x5b)]
    results.push(arithmetic.product(a, b), arithmetic.remainder(a, b), arithmetic.decrement(a))
    expect(results.every((result) => result.some((byte) => byte !== 0))).toBe(true)
  }
  expect(results.every((result) => result.every((byte) => byte === 0))).toBe(true)
})
