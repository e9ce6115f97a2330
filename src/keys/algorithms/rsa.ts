import { checkPrime, createPublicKey, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
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
    // OpenSSL takes it, and fails when it is to encrypt.
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

/** Without zeros in front, of which tokens give some. */
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
  const [n = 0n, e = 0n, d = 0n, p = 0n, q = 0n, dp, dq, qi = 0n] = numbersOf(inner).map(toNumber)
  checkSize(modulusBits, n.toString(2).length)
  checkExponent(e)
  const sound = p > 1n && q > 1n && p !== q && p * q === n && (e * d) % (p - 1n) === 1n && (e * d) % (q - 1n) === 1n
  if (!sound || dp !== d % (p - 1n) || dq !== d % (q - 1n) || (q * qi) % p !== 1n || qi >= p) {
    throw malformed('its numbers do not belong together')
  }
  if (!(await isPrime(p)) || !(await isPrime(q))) throw malformed('its primes are none')
}

const isPrime = promisify<bigint, boolean>((candidate, done) => checkPrime(candidate, done))

function checkSize(modulusBits: number, bits: number): void {
  if (bits === modulusBits) return
  throw badRequest(`invalid key size: expected ${modulusBits / 8} bytes, got ${Math.ceil(bits / 8)} bytes`)
}

/** The reference's bounds; FIPS 186-5 wants at least 65537 of keys that are made. @throws ApiError 400 */
function checkExponent(exponent: bigint): void {
  if (exponent < 3n || exponent % 2n === 0n || exponent >= 2n ** 31n) {
    throw malformed('its public exponent is out of range')
  }
}
