import { checkPrime, createPublicKey, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { Arithmetic } from '../../crypto/arithmetic.ts'
import { asn1, expect, NotDer, readAll, readNumber, readOne, write, writeNumber } from '../../crypto/der.ts'
import { toNumber } from '../../crypto/number.ts'
import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { PrivateAttributes, PrivateKeyForm, PublicKeyForm, Rsa } from './algorithm.ts'
import { malformed } from './malformed.ts'
import { rsaSignature } from './rsasignature.ts'

/** CKA_PUBLIC_EXPONENT of every RSA key made here: 65537. */
const publicExponent = Buffer.from([1, 0, 1])
const rsaEncryption = Buffer.concat([Buffer.from('06092a864886f70d010101', 'hex'), write(asn1.null)])

/** Sizes of keys that are made, in bits. */
const madeBits = [2048, 3072, 4096]
const imported = new Map<string, Rsa>()

/** The type of keys of another size, by its name: 1024 to 8192 bits, whole bytes. */
export function importedRsa(name: string): Rsa | undefined {
  const bits = Number(/^rsa-([1-9]\d{3})$/.exec(name)?.[1])
  if (!(bits >= 1024 && bits <= 8192 && bits % 8 === 0)) return undefined
  const row = imported.get(name) ?? rsa(bits)
  imported.set(name, row)
  return row
}

/** @param modulusBits whole bytes */
export function rsa(modulusBits: number): Rsa {
  const modulusBytes = modulusBits / 8
  const row: Rsa = {
    name: `rsa-${modulusBits}`,
    kind: 'rsa',
    class: 'private',
    slow: true,
    weak: modulusBits < 2048,
    made: madeBits.includes(modulusBits),
    modulusBits,
    oaep: { modulusBytes },
    sizeBytes: modulusBytes,
    keyType: CKK.RSA,
    generation: CKM.RSA_PKCS_KEY_PAIR_GEN,
    mechanism: CKM.RSA_PKCS,
    using: 'rsa-pkcs1',
    wrapping: 'wrap-rsa',
    abilities: { encrypt: true, sign: true, derive: false },
    usages: ['sign', 'decrypt'],
    hostable: false,
    entry: `rsa-${modulusBits}`,
    exports: { 'encryption-key': 'pkcs1', 'signing-key': 'pkcs1', 'public-key': 'spki' },
    fips: modulusBits >= 2048,
    publicKey: publicKeyOf(modulusBits),
    privateKey: privateKeyOf(modulusBits, (inner) => ({
      algorithm: row,
      inner: Buffer.from(inner),
      publicKey: publicHalf(inner),
    })),
    signature: rsaSignature(modulusBytes),
    matches: ({ modulus }) => modulusBits === 8 * (modulus?.length ?? 0),
  }
  return row
}

const publicKeyOf = (modulusBits: number): PublicKeyForm => ({
  type: 'rsa',
  parameters: { modulusBits, publicExponent },
  attributes: ['modulus', 'publicExponent'],
  onPrivate: true,
  bits: ({ modulus, publicExponent: exponent }) =>
    modulus && exponent && write(asn1.sequence, writeNumber(bare(modulus)), writeNumber(bare(exponent))),
  check(key) {
    const { modulusLength = 0, publicExponent: exponent = 0n } = key.asymmetricKeyDetails ?? {}
    checkSize(modulusBits, modulusLength)
    checkExponent(exponent)
    // OpenSSL accepts it, and then fails to encrypt.
    if (isEven(key)) throw malformed('its modulus is even')
  },
})

const privateKeyOf = (modulusBits: number, read: PrivateKeyForm['read']): PrivateKeyForm => ({
  family: 'rsa',
  identifier: rsaEncryption,
  read,
  check: (inner) => checkNumbers(modulusBits, inner),
  readable: {
    ability: 'read-rsa',
    attributes: numberNames,
    inner: (shown) => writeRsa(shown),
    copy: (inner) => Buffer.from(inner),
  },
  write: (inner) => inner,
})

/** An RSAPrivateKey's numbers in their order, as a token names them. */
const numberNames = [
  ...(['modulus', 'publicExponent', 'privateExponent', 'prime1', 'prime2'] as const),
  ...(['exponent1', 'exponent2', 'coefficient'] as const),
] as const

/** RSAPrivateKey (RFC 8017 A.1.2); undefined where a number is missing. */
function writeRsa(shown: PrivateAttributes): Buffer | undefined {
  const numbers = numberNames.map((name) => shown[name])
  if (!numbers.every((number) => number !== undefined)) return undefined
  const written = numbers.map((number) => writeNumber(bare(number)))
  const inner = write(asn1.sequence, writeNumber(Buffer.alloc(0)), ...written)
  for (const number of written) number.fill(0)
  return inner
}

/** Without the leading zeros that some tokens add. */
function bare(number: Buffer): Buffer {
  const first = number.findIndex((byte) => byte !== 0)
  return first < 0 ? number.subarray(number.length) : number.subarray(first)
}

/** The RSAPublicKey in the SPKI of an RSA key, which an RSA-PSS key has too (RFC 4055). */
export function pkcs1Of(key: KeyObject): Buffer {
  const [, bits] = readAll(readOne(key.export({ format: 'der', type: 'spki' }), asn1.sequence))
  return expect(bits, asn1.bitString).subarray(1)
}

function isEven(key: KeyObject): boolean {
  const [modulus] = readAll(readOne(pkcs1Of(key), asn1.sequence))
  return ((expect(modulus, asn1.integer).at(-1) ?? 0) & 1) === 0
}

function publicHalf(inner: Buffer): KeyObject {
  const [modulus, exponent] = numbersOf(inner)
  const key = { kty: 'RSA', n: modulus?.toString('base64url') ?? '', e: exponent?.toString('base64url') ?? '' }
  return createPublicKey({ format: 'jwk', key })
}

/** n, e, d, p, q, d mod p−1, d mod q−1 and q⁻¹ mod p of an RSAPrivateKey. @throws ApiError 400; NotDer */
function numbersOf(inner: Buffer): readonly Buffer[] {
  const [version, ...numbers] = readAll(readOne(inner, asn1.sequence))
  if (!expect(version, asn1.integer).equals(Buffer.alloc(1))) throw malformed('it has more than two primes')
  if (numbers.length !== 8) throw new NotDer('an RSA key has eight numbers')
  return numbers.map(readNumber)
}

async function checkNumbers(modulusBits: number, inner: Buffer): Promise<void> {
  const [n = none, e = none, , p = none, q = none] = numbersOf(inner)
  checkSize(modulusBits, 8 * n.length - (Math.clz32(n[0] ?? 0) - 24))
  checkExponent(toNumber(e))
  const numbers = numbersOf(inner)
  // The time to multiply them grows with the square of their length.
  if (numbers.some((number) => number.length > n.length) || !belongTogether(numbers))
    throw malformed('its numbers do not belong together')
  if (!(await isPrime(p)) || !(await isPrime(q))) throw malformed('its primes are none')
}

const none = Buffer.alloc(0)
const one = Buffer.from([1])

/** The equations of RFC 8017 section 3.2. */
function belongTogether([
  n = none,
  e = none,
  d = none,
  p = none,
  q = none,
  dp,
  dq,
  qi = none,
]: readonly Buffer[]): boolean {
  using of = new Arithmetic()
  const above = (number: Buffer, other: Buffer) =>
    number.length > other.length || (number.length === other.length && number.compare(other) > 0)
  if (!above(p, one) || !above(q, one) || p.equals(q) || !of.product(p, q).equals(n)) return false
  const product = of.product(e, d)
  const fits = (prime: Buffer, exponent: Buffer | undefined): boolean => {
    const order = of.decrement(prime)
    return of.remainder(product, order).equals(one) && exponent?.equals(of.remainder(d, order)) === true
  }
  return fits(p, dp) && fits(q, dq) && of.remainder(of.product(q, qi), p).equals(one) && above(p, qi)
}

const isPrime = promisify<Buffer, boolean>((candidate, done) => checkPrime(candidate, done))

function checkSize(modulusBits: number, bits: number): void {
  if (bits === modulusBits) return
  throw badRequest(`invalid key size: expected ${modulusBits / 8} bytes, got ${Math.ceil(bits / 8)} bytes`)
}

/** The reference's bounds; FIPS 186-5 requires at least 65537 for generated keys. @throws ApiError 400 */
function checkExponent(exponent: bigint): void {
  if (exponent < 3n || exponent % 2n === 0n || exponent >= 2n ** 31n) {
    throw malformed('its public exponent is out of range')
  }
}
