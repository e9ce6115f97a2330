import { asn1, expect, NotDer, readAll, readNumber, readOne, write } from '../../crypto/der.ts'
import { badRequest } from '../../errors.ts'
import type { Family, Pair, PairAlgorithm } from '../algorithms/algorithm.ts'
import { malformed } from '../algorithms/malformed.ts'
import { ofCurve, pairAlgorithm } from '../algorithms.ts'

/**
 * Import and export of private keys: read from PKCS#8 (RFC 5208, 5915, 8017, 8410), checked number by number, and
 * written again in one form, because tokens unwrap anything. Secrets, and the numbers of the checks, lie in buffers
 * that are wiped.
 */

export const wipePair = ({ inner }: Pair): void => void inner.fill(0)

/** A key from outside. @throws ApiError 400 saying what is wrong with the key, never its value */
export async function readPair(algorithm: PairAlgorithm, pkcs8: Buffer): Promise<Pair> {
  const pair = parsePair(algorithm, pkcs8)
  try {
    await algorithm.privateKey.check?.(pair.inner)
    return pair
  } catch (error) {
    wipePair(pair)
    throw error
  }
}

/** The same for a key from the token, whose numbers are not checked. */
export function parsePair({ privateKey }: PairAlgorithm, pkcs8: Buffer): Pair {
  try {
    const { family, curve, inner } = readPkcs8(pkcs8)
    if (family !== privateKey.family) {
      throw badRequest(`invalid key type: expected ${privateKey.family}, got ${family}`)
    }
    return privateKey.read(inner, curve)
  } catch (error) {
    if (error instanceof NotDer) throw malformed('it is no PKCS#8 PrivateKeyInfo', error)
    throw error
  }
}

/**
 * The type of a private key from outside.
 * @throws ApiError 400 for keys that are not served: DSA, Ed448, other curves or explicit ones, RSA of other sizes
 */
export function identifyPair(pkcs8: Buffer): PairAlgorithm {
  try {
    const { family, curve, inner } = readPkcs8(pkcs8)
    const name = family === 'rsa' ? `rsa-${modulusBits(inner)}` : family
    const algorithm = family === 'ecdsa' ? ofCurve(curve) : pairAlgorithm(name)
    if (algorithm !== undefined) return algorithm
    throw badRequest(
      family === 'rsa'
        ? `unsupported bit length for RSA key: ${modulusBits(inner)} (1024 to 8192 bits, whole bytes, are taken)`
        : 'unsupported curve: P-224, P-256, P-384 and P-521 are taken',
    )
  } catch (error) {
    if (error instanceof NotDer) throw malformed('it is no PKCS#8 PrivateKeyInfo of a key that is served', error)
    throw error
  }
}

/** Of an RSAPrivateKey. @throws NotDer */
function modulusBits(inner: Buffer): number {
  const modulus = readNumber(readAll(readOne(inner, asn1.sequence))[1])
  return 8 * modulus.length - (Math.clz32(modulus[0] ?? 0) - 24)
}

/** PKCS#8 without attributes, the form every token takes; the caller wipes it. */
export function writePkcs8({ algorithm: { privateKey }, inner }: Pick<Pair, 'algorithm' | 'inner'>): Buffer {
  const contents = privateKey.write(inner)
  const secret = write(asn1.octetString, contents)
  const identifier = write(asn1.sequence, privateKey.identifier)
  const pkcs8 = write(asn1.sequence, write(asn1.integer, Buffer.alloc(1)), identifier, secret)
  secret.fill(0)
  if (contents !== inner) contents.fill(0)
  return pkcs8
}

/** id-RSASSA-PSS (RFC 4055). */
const rsaPss = '2a864886f70d01010a'

const families: ReadonlyMap<string, Family> = new Map([
  ['2a864886f70d010101', 'rsa'],
  [rsaPss, 'rsa'],
  ['2a8648ce3d0201', 'ecdsa'],
  ['2b6570', 'ed25519'],
])
/** Curves that some tools name in an EC key that is one of Ed25519. */
const edwardsCurves = ['2b6570', '2b06010401da470f01']

/** `curve`: OID in hexadecimal; `inner` is a view. @throws ApiError 400; NotDer */
export function readPkcs8(pkcs8: Buffer): { family: Family; curve: string; inner: Buffer } {
  const [version, identifier, key] = readAll(readOne(pkcs8, asn1.sequence))
  if ((expect(version, asn1.integer)[0] ?? 2) > 1) throw malformed('its version is unknown')
  const [name, parameters, ...more] = readAll(expect(identifier, asn1.sequence))
  const inner = expect(key, asn1.octetString)
  const family = families.get(expect(name, asn1.oid).toString('hex'))
  if (family === undefined) throw malformed('its algorithm is unknown')
  if (more.length > 0) throw malformed('its algorithm has unknown parameters')
  if (family !== 'ecdsa') {
    // NULL of RSA (RFC 8017 A.1), a SEQUENCE of RSA-PSS (RFC 4055 section 3.1); Ed25519 has none (RFC 8410 section 3).
    const isNull = parameters?.tag === asn1.null && parameters.contents.length === 0
    const isPss = parameters?.tag === asn1.sequence && name?.contents.toString('hex') === rsaPss
    if (parameters !== undefined && !isNull && !isPss) throw malformed('its algorithm has unknown parameters')
    return { family, curve: '', inner }
  }
  const curve = expect(parameters, asn1.oid).toString('hex')
  return { family: edwardsCurves.includes(curve) ? 'ed25519' : family, curve, inner }
}
