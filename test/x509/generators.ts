import fc from 'fast-check'
import { extensionOids } from '../../src/x509/extension.ts'
import type { GeneralName } from '../../src/x509/extensions/generalname.ts'
import { attributeTypes, writeName } from '../../src/x509/name.ts'

/** Values of every kind that this project writes. */

const bytes = (minLength: number, maxLength = minLength) =>
  fc.uint8Array({ minLength, maxLength }).map((array) => Buffer.from(array))

const arc = fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 128n }))
export const oid = fc
  .tuple(
    fc.oneof(
      fc.tuple(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 39 })),
      fc.tuple(fc.constant(2), arc as fc.Arbitrary<number | bigint>),
    ),
    fc.array(arc, { maxLength: 5 }),
  )
  .map(([first, rest]) => [...first, ...rest].join('.'))

/** Any text without a null byte and without half a surrogate pair. */
export const text = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 40 })
  .map((value) => value.replaceAll('\0', ' ').toWellFormed())

export const ascii = fc
  .string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 })
  .map((value) => value.replaceAll('\0', ' '))

const attribute = fc.record({ type: fc.oneof(fc.constantFrom(...Object.values(attributeTypes)), oid), value: text })

export const rdns = fc.array(fc.array(attribute, { minLength: 1, maxLength: 3 }), { maxLength: 5 })
export const name = rdns.map(writeName)

export const generalName: fc.Arbitrary<GeneralName> = fc.oneof(
  fc.record({
    kind: fc.constant('other' as const),
    oid,
    value: fc.oneof(text, fc.constant(Buffer.from('020105', 'hex'))),
  }),
  fc.record({ kind: fc.constantFrom('email' as const, 'dns' as const, 'uri' as const), value: ascii }),
  fc.record({ kind: fc.constant('ip' as const), value: fc.oneof(bytes(4), bytes(16)) }),
  fc.record({ kind: fc.constant('directory' as const), value: name }),
  fc.record({ kind: fc.constant('registered' as const), value: oid }),
)

export const subtree: fc.Arbitrary<GeneralName> = fc.oneof(
  fc.record({ kind: fc.constantFrom('email' as const, 'dns' as const, 'uri' as const), value: ascii }),
  fc.record({ kind: fc.constant('ip' as const), value: fc.oneof(bytes(8), bytes(32)) }),
  fc.record({ kind: fc.constant('directory' as const), value: name }),
)

/** Magnitudes without leading zeros. */
export const serial = bytes(1, 20).map((magnitude) => {
  const first = magnitude.findIndex((byte) => byte !== 0)
  return first < 0 ? Buffer.alloc(1) : magnitude.subarray(first)
})

const own: ReadonlySet<string> = new Set(Object.values(extensionOids))

/** Extensions unknown to this project, each OID once. */
export const extensions = fc.uniqueArray(
  fc.record({ oid: oid.filter((candidate) => !own.has(candidate)), critical: fc.boolean(), value: bytes(0, 40) }),
  { maxLength: 6, selector: (extension) => extension.oid },
)

const firstSecond = -62_167_219_200
const lastSecond = 253_402_300_799

/** Whole seconds of the years 0 to 9999, in milliseconds. */
export const time = fc
  .oneof(
    fc.integer({ min: firstSecond, max: lastSecond }),
    fc.integer({ min: Date.UTC(2049, 11, 31) / 1000, max: Date.UTC(2050, 0, 2) / 1000 }),
    fc.integer({ min: Date.UTC(1949, 11, 31) / 1000, max: Date.UTC(1950, 0, 2) / 1000 }),
  )
  .map((seconds) => seconds * 1000)
