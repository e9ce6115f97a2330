import { checkPrime, createECDH, createPublicKey, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { expect, NotDer, readAll, readNumber, readOne, TAG, write, writeNumber } from '../../crypto/der.ts'
import { badRequest } from '../../errors.ts'
import { algorithms, type Ec, type Ed25519, type Rsa } from '../algorithms.ts'
import { checkExponent } from '../publickey.ts'
import { seedKey } from './making.ts'

/**
 * Private keys as they come in and go out: read out of PKCS#8 (RFC 5208, 5915, 8017, 8410), checked number by number, and written
 * again in one form, because tokens unwrap whatever they are given. What is secret lies in buffers that `wipe` clears; the big
 * integers that checks need are left to the garbage collector.
 */
export interface Pair {
  readonly algorithm: Ec | Rsa | Ed25519
  /** RSAPrivateKey, ECPrivateKey with curve and public key, or the 32 bytes of an Ed25519 seed. */
  readonly inner: Buffer
  readonly publicKey: KeyObject
}

export const wipePair = ({ inner }: Pair): void => void inner.fill(0)

const oid = {
  rsa: '2a864886f70d010101',
  rsaPss: '2a864886f70d01010a',
  ec: '2a8648ce3d0201',
  ed25519: '2b6570',
  /** What some tools name as the curve of an EC key that is one of Ed25519. */
  edwardsCurves: ['2b6570', '2b06010401da470f01'],
}

/** A key from outside. @throws ApiError 400 saying what is wrong with the key, never what it is */
export async function readPair(algorithm: Ec | Rsa | Ed25519, pkcs8: Buffer): Promise<Pair> {
  const pair = parsePair(algorithm, pkcs8)
  if (algorithm.kind !== 'rsa') return pair
  try {
    await checkRsa(algorithm, pair.inner)
    return pair
  } catch (error) {
    wipePair(pair)
    throw error
  }
}

/** The same of a key that the token gave out, whose numbers are not checked. */
export function parsePair(algorithm: Ec | Rsa | Ed25519, pkcs8: Buffer): Pair {
  try {
    const { kind, curve, inner } = readPkcs8(pkcs8)
    const got = kind === 'ec' ? 'ecdsa' : kind
    const wanted = algorithm.kind === 'ec' ? 'ecdsa' : algorithm.kind
    if (kind !== algorithm.kind) throw badRequest(`invalid key type: expected ${wanted}, got ${got}`)
    if (algorithm.kind === 'rsa') return readRsa(algorithm, inner)
    if (algorithm.kind === 'ed25519') return ed25519Pair(algorithm, Buffer.from(readSeed(inner)))
    return readEc(algorithm, inner, curve)
  } catch (error) {
    if (error instanceof NotDer) throw malformed('it is no PKCS#8 PrivateKeyInfo', error)
    throw error
  }
}

/** The key out of its seed, which the pair then owns. */
export function ed25519Pair(algorithm: Ed25519, seed: Buffer): Pair {
  if (seed.length !== 32) throw malformed('an Ed25519 seed has 32 bytes')
  return { algorithm, inner: seed, publicKey: createPublicKey(seedKey(seed)) }
}

/** PKCS#8 without attributes, the form every token takes; the caller wipes it. */
export function writePkcs8({ algorithm, inner }: Pair): Buffer {
  if (algorithm.kind !== 'ed25519') return pkcs8Of(algorithm.kind, inner, algorithm)
  // CurvePrivateKey of RFC 8410 is an OCTET STRING of its own.
  const seed = write(TAG.OCTETS, inner)
  const pkcs8 = privateKeyInfo(algorithm.ecParameters, seed)
  seed.fill(0)
  return pkcs8
}

/** @param inner RSAPrivateKey or ECPrivateKey @param curve whose OID goes with the latter */
export const pkcs8Of = (kind: 'rsa' | 'ec', inner: Buffer, curve?: Pair['algorithm']): Buffer =>
  privateKeyInfo(
    Buffer.concat([
      write(TAG.OID, Buffer.from(oid[kind], 'hex')),
      curve?.kind === 'ec' ? curve.ecParameters : write(TAG.NULL),
    ]),
    inner,
  )

function privateKeyInfo(identifier: Buffer, key: Buffer): Buffer {
  const secret = write(TAG.OCTETS, key)
  const pkcs8 = write(TAG.SEQUENCE, write(TAG.INTEGER, Buffer.alloc(1)), write(TAG.SEQUENCE, identifier), secret)
  secret.fill(0)
  return pkcs8
}

interface Read {
  readonly kind: 'rsa' | 'ec' | 'ed25519'
  /** Hexadecimal OID. */
  readonly curve: string
  readonly inner: Buffer
}

function readPkcs8(pkcs8: Buffer): Read {
  const [version, identifier, key] = readAll(readOne(pkcs8, TAG.SEQUENCE))
  if ((expect(version, TAG.INTEGER)[0] ?? 2) > 1) throw malformed('its version is unknown')
  const [name, parameters] = readAll(expect(identifier, TAG.SEQUENCE))
  const inner = expect(key, TAG.OCTETS)
  const family = expect(name, TAG.OID).toString('hex')
  if (family === oid.rsa || family === oid.rsaPss) return { kind: 'rsa', curve: '', inner }
  if (family === oid.ed25519) return { kind: 'ed25519', curve: '', inner }
  if (family !== oid.ec) throw malformed('its algorithm is unknown')
  const curve = expect(parameters, TAG.OID).toString('hex')
  return { kind: oid.edwardsCurves.includes(curve) ? 'ed25519' : 'ec', curve, inner }
}

/** RFC 8410's OCTET STRING, or the seed in an ECPrivateKey, or bare. */
function readSeed(inner: Buffer): Buffer {
  if (inner.length === 32) return inner
  if (inner[0] !== TAG.SEQUENCE) return readOne(inner, TAG.OCTETS)
  return expect(readAll(readOne(inner, TAG.SEQUENCE))[1], TAG.OCTETS)
}

function readEc(algorithm: Ec, inner: Buffer, curveOid: string): Pair {
  const [version, scalar, ...optional] = readAll(readOne(inner, TAG.SEQUENCE))
  if (!expect(version, TAG.INTEGER).equals(Buffer.from([1]))) throw malformed('its version is unknown')
  const { ecParameters } = algorithm
  if (curveOid !== readOne(ecParameters, TAG.OID).toString('hex')) {
    const other = [...algorithms.values()].find(
      (one) => one.kind === 'ec' && readOne(one.ecParameters, TAG.OID).toString('hex') === curveOid,
    )
    throw badRequest(
      `invalid curve: expected ${algorithm.jwk}, got ${other?.kind === 'ec' ? other.jwk : 'an unknown one'}`,
    )
  }
  const pair = ecPair(algorithm, expect(scalar, TAG.OCTETS))
  const point = optional.find(({ tag }) => tag === 0xa1)
  if (point && !samePoint(readOne(point.contents, TAG.BITS).subarray(1), pair)) {
    wipePair(pair)
    throw malformed('its public key is not that of its private key')
  }
  return pair
}

/** @param scalar big-endian, of any length @throws ApiError 400 unless it is between 0 and the curve's order */
export function ecPair(algorithm: Ec, scalar: Buffer): Pair {
  const { curve, ecParameters, jwk: crv } = algorithm
  const { coordinateBytes } = curve
  const agreement = createECDH(curve.openssl)
  try {
    agreement.setPrivateKey(scalar)
  } catch (error) {
    throw malformed('its private key is out of range', error)
  }
  const point = agreement.getPublicKey()
  const d = Buffer.alloc(coordinateBytes)
  scalar.subarray(-coordinateBytes).copy(d, coordinateBytes - Math.min(coordinateBytes, scalar.length))
  const secret = write(TAG.OCTETS, d)
  const inner = write(
    TAG.SEQUENCE,
    writeNumber(Buffer.from([1])),
    secret,
    write(0xa0, ecParameters),
    write(0xa1, write(TAG.BITS, Buffer.alloc(1), point)),
  )
  for (const part of [d, secret]) part.fill(0)
  const x = point.toString('base64url', 1, 1 + coordinateBytes)
  const y = point.toString('base64url', 1 + coordinateBytes)
  return { algorithm, inner, publicKey: createPublicKey({ format: 'jwk', key: { kty: 'EC', crv, x, y } }) }
}

/** Whether the encoded point, in whatever form, is the pair's; one that is not on the curve is nobody's. */
function samePoint(encoded: Buffer, { publicKey }: Pair): boolean {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const own = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  if (encoded.length === own.length) return encoded.equals(own)
  const compressed = Buffer.concat([Buffer.from([2 + ((own.at(-1) ?? 0) & 1)]), own.subarray(1, (own.length + 1) / 2)])
  return encoded.equals(compressed)
}

const isPrime = promisify<bigint, boolean>((candidate, done) => checkPrime(candidate, done))

function readRsa(algorithm: Rsa, inner: Buffer): Pair {
  const [modulus, exponent] = rsaNumbers(inner)
  const key = { kty: 'RSA', n: modulus?.toString('base64url') ?? '', e: exponent?.toString('base64url') ?? '' }
  return { algorithm, inner: Buffer.from(inner), publicKey: createPublicKey({ format: 'jwk', key }) }
}

/** n, e, d, p, q, d mod p−1, d mod q−1 and q⁻¹ mod p of an RSAPrivateKey. @throws ApiError 400; NotDer */
function rsaNumbers(inner: Buffer): readonly Buffer[] {
  const [version, ...numbers] = readAll(readOne(inner, TAG.SEQUENCE))
  if (!expect(version, TAG.INTEGER).equals(Buffer.alloc(1))) throw malformed('it has more than two primes')
  if (numbers.length !== 8) throw new NotDer('an RSA key has eight numbers')
  return numbers.map(readNumber)
}

async function checkRsa({ modulusBits }: Rsa, inner: Buffer): Promise<void> {
  const [n = 0n, e = 0n, d = 0n, p = 0n, q = 0n, dp, dq, qi = 0n] = rsaNumbers(inner).map(toNumber)
  const bits = n.toString(2).length
  if (bits !== modulusBits) {
    throw badRequest(`invalid key size: expected ${modulusBits / 8} bytes, got ${Math.ceil(bits / 8)} bytes`)
  }
  checkExponent(e)
  const sound = p > 1n && q > 1n && p !== q && p * q === n && (e * d) % (p - 1n) === 1n && (e * d) % (q - 1n) === 1n
  if (!sound || dp !== d % (p - 1n) || dq !== d % (q - 1n) || (q * qi) % p !== 1n || qi >= p) {
    throw malformed('its numbers do not belong together')
  }
  if (!(await isPrime(p)) || !(await isPrime(q))) throw malformed('its primes are none')
}

const toNumber = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex') || '0'}`)

const malformed = (why: string, cause?: unknown): Error => badRequest(`error parsing asymmetric key: ${why}`, { cause })
