import { createECDH, createPublicKey, type KeyObject, verify as verifyInput } from 'node:crypto'
import { asn1, expect, readAll, readOne, write, writeNumber } from '../../crypto/der.ts'
import { type Curve, encodePoint, verifyDigest } from '../../crypto/ecdsa.ts'
import { digest } from '../../crypto/hashes.ts'
import { fromDer, toDer } from '../../crypto/signature.ts'
import { withoutStackTraces } from '../../crypto/stacktraces.ts'
import { secretBuffer } from '../../crypto/wiping.ts'
import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { Ec, Pair, PrivateKeyForm, PublicKeyForm } from './algorithm.ts'
import { malformed } from './malformed.ts'
import { certificationScheme, type Scheme, type Signature } from './signature.ts'

const ecPublicKey = Buffer.from('06072a8648ce3d0201', 'hex')

/** JWK's names of the curves of this table, by OID in hexadecimal. */
const curveNames = new Map<string, string>()

interface Parameters {
  readonly openssl: string
  /** DER of the curve's OID, in hexadecimal. */
  readonly oid: string
  readonly prime: bigint
  readonly order: bigint
  /** AlgorithmIdentifier of ecdsa-with-… and its hash, for certification requests (RFC 5758 section 3.2). */
  readonly certification: readonly [oid: string, hash: 'sha2-256' | 'sha2-384' | 'sha2-512']
}

/**
 * The key type of ECDSA over a curve with a prime field (FIPS 186-5 section 6, SP 800-186 section 3.2.1).
 * @param bits of the field
 */
export function ecdsa(bits: 224 | 256 | 384 | 521, { openssl, oid, prime, order, certification }: Parameters): Ec {
  const curve: Curve = { openssl, coordinateBytes: Math.ceil(bits / 8), prime, order }
  const ecParameters = Buffer.from(oid, 'hex')
  const jwk = `P-${bits}`
  curveNames.set(readOne(ecParameters, asn1.oid).toString('hex'), jwk)
  const row: Ec = {
    name: `ecdsa-p${bits}`,
    kind: 'ec',
    class: 'private',
    slow: false,
    weak: false,
    made: true,
    curve,
    ecParameters,
    jwk,
    sizeBytes: curve.coordinateBytes,
    keyType: CKK.EC,
    generation: CKM.EC_KEY_PAIR_GEN,
    mechanism: CKM.ECDSA,
    using: `ecdsa-p${bits}`,
    wrapping: `wrap-p${bits}`,
    abilities: { encrypt: false, sign: true, derive: false },
    usages: ['sign'],
    hostable: false,
    entry: `P-${bits}`,
    exports: { 'signing-key': 'sec1', 'public-key': 'spki' },
    fips: true,
    publicKey: publicKeyOf({ curve, ecParameters, jwk }),
    privateKey: privateKeyOf(curve, ecParameters, (inner, curveOid) => readEc(row, inner, curveOid)),
    signature: signatureOf(curve, certification),
    matches: (shown) => shown.ecParameters?.equals(ecParameters) === true,
  }
  return row
}

function publicKeyOf({ curve, ecParameters, jwk }: Pick<Ec, 'curve' | 'ecParameters' | 'jwk'>): PublicKeyForm {
  const { coordinateBytes } = curve
  return {
    type: 'ec',
    parameters: { ecParameters },
    attributes: ['ecPoint'],
    onPrivate: false,
    bits: ({ ecPoint }) => (ecPoint?.length === 1 + 2 * coordinateBytes ? ecPoint : undefined),
    check({ asymmetricKeyDetails: details }) {
      if (details?.namedCurve === curve.openssl) return
      throw badRequest(`invalid curve: expected ${jwk}, got ${details?.namedCurve ?? 'an unknown one'}`)
    },
  }
}

const privateKeyOf = (curve: Curve, ecParameters: Buffer, read: PrivateKeyForm['read']): PrivateKeyForm => ({
  family: 'ecdsa',
  identifier: Buffer.concat([ecPublicKey, ecParameters]),
  read,
  readable: {
    ability: 'read-ec',
    attributes: ['value'],
    inner: ({ value }, bits) => value && writeEc({ curve, ecParameters }, value, bits),
    copy(inner, bits) {
      const [, scalar] = readAll(readOne(inner, asn1.sequence))
      return writeEc({ curve, ecParameters }, expect(scalar, asn1.octetString), bits)
    },
  },
  write: (inner) => inner,
  unwrapping: (key) => ({ ecPoint: encodePoint(key) }),
})

/** ECPrivateKey (RFC 5915). */
function readEc(algorithm: Ec, inner: Buffer, curveOid: string): Pair {
  const [version, scalar, ...optional] = readAll(readOne(inner, asn1.sequence))
  if (!expect(version, asn1.integer).equals(Buffer.from([1]))) throw malformed('its version is unknown')
  if (curveOid !== readOne(algorithm.ecParameters, asn1.oid).toString('hex')) {
    const other = curveNames.get(curveOid) ?? 'an unknown one'
    throw badRequest(`invalid curve: expected ${algorithm.jwk}, got ${other}`)
  }
  const pair = ecPair(algorithm, expect(scalar, asn1.octetString))
  const point = optional.find(({ tag }) => tag === 0xa1)
  if (point && !samePoint(readOne(point.contents, asn1.bitString).subarray(1), pair.publicKey)) {
    pair.inner.fill(0)
    throw malformed('its public key is not that of its private key')
  }
  return pair
}

/** @param scalar big-endian, of any length @throws ApiError 400 unless it is between 0 and the curve's order */
export function ecPair(algorithm: Ec, scalar: Buffer): Pair {
  const { curve, ecParameters } = algorithm
  const point = pointOf(curve, scalar)
  const inner = writeEc(algorithm, scalar, point)
  const identifier = write(asn1.sequence, ecPublicKey, ecParameters)
  const spki = write(asn1.sequence, identifier, write(asn1.bitString, Buffer.alloc(1), point))
  return { algorithm, inner, publicKey: createPublicKey({ key: spki, format: 'der', type: 'spki' }) }
}

/** The public point. @throws ApiError 400 unless the scalar is between 0 and the curve's order */
function pointOf({ openssl, coordinateBytes }: Curve, scalar: Buffer): Buffer {
  const agreement = createECDH(openssl)
  try {
    agreement.setPrivateKey(scalar)
    return agreement.getPublicKey()
  } catch (error) {
    throw malformed('its private key is out of range', error)
  } finally {
    // OpenSSL would keep the scalar until garbage collection: another one of the same length overwrites it.
    agreement.setPrivateKey(Buffer.alloc(coordinateBytes, 1))
  }
}

/** ECPrivateKey with curve and public key. @param scalar big-endian, of any length */
function writeEc({ curve, ecParameters }: Pick<Ec, 'curve' | 'ecParameters'>, scalar: Buffer, point: Buffer): Buffer {
  const { coordinateBytes } = curve
  const d = secretBuffer(coordinateBytes)
  scalar.subarray(-coordinateBytes).copy(d, coordinateBytes - Math.min(coordinateBytes, scalar.length))
  const secret = write(asn1.octetString, d)
  const inner = write(
    asn1.sequence,
    writeNumber(Buffer.from([1])),
    secret,
    write(0xa0, ecParameters),
    write(0xa1, write(asn1.bitString, Buffer.alloc(1), point)),
  )
  for (const part of [d, secret]) part.fill(0)
  return inner
}

/** Whether the encoded point, in whatever form, is the key's; a point off the curve never is. */
function samePoint(encoded: Buffer, key: KeyObject): boolean {
  const own = encodePoint(key)
  if (encoded.length === own.length) return encoded.equals(own)
  const compressed = Buffer.concat([Buffer.from([2 + ((own.at(-1) ?? 0) & 1)]), own.subarray(1, (own.length + 1) / 2)])
  return encoded.equals(compressed)
}

function signatureOf(curve: Curve, [identifier, hash]: Parameters['certification']): Signature {
  const { coordinateBytes } = curve
  const mechanism = { type: CKM.ECDSA }
  const bytes = 2 * coordinateBytes
  return {
    hashes: true,
    certification: {
      algorithm: write(asn1.sequence, Buffer.from(identifier, 'hex')),
      scheme: certificationScheme(hash),
    },
    request(input, scheme) {
      // FIPS 186-5 6.4.1: the leftmost bits count; tokens refuse longer digests, or empty ones, which stand for zero.
      const whole = scheme.prehashed || !scheme.hash ? input : digest(scheme.hash, input)
      const message = whole.length === 0 ? Buffer.alloc(1) : whole.subarray(0, coordinateBytes)
      return scheme.marshaling === 'jws' ? { mechanism, message, bytes } : { mechanism, message, bytes, encode: toDer }
    },
    verify: (key, input, signature, scheme) => verify(curve, key, input, signature, scheme),
  }
}

function verify(curve: Curve, key: KeyObject, input: Uint8Array, signature: Uint8Array, scheme: Scheme): boolean {
  const { coordinateBytes } = curve
  const bare = scheme.marshaling === 'jws' ? signature : fromDer(signature, coordinateBytes)
  if (bare === undefined || bare.length !== 2 * coordinateBytes) return false
  if (scheme.prehashed || scheme.hash === undefined) return verifyDigest(curve, key, input, bare)
  const { node } = scheme.hash
  // A bare key saves a fifth of the verification's time over one with options.
  if (scheme.marshaling !== 'jws') return verifyInput(node, input, key, signature)
  return withoutStackTraces(() => verifyInput(node, input, { key, dsaEncoding: 'ieee-p1363' }, signature))
}
