import { createPublicKey, type KeyObject, sign as signOnHost, verify as verifyOnHost } from 'node:crypto'
import { asn1, expect, readAll, readOne, write } from '../../crypto/der.ts'
import { isKeyPoint, pointOf } from '../../crypto/edwards.ts'
import { privateKeyOf } from '../../crypto/privatekey.ts'
import { badRequest } from '../../errors.ts'
import { CKK, CKM } from '../../hsm/constants.ts'
import type { Ed25519, Pair, PrivateKeyForm, PublicKeyForm } from './algorithm.ts'
import { malformed } from './malformed.ts'
import { certificationScheme, type Signature } from './signature.ts'

const oid = Buffer.from('06032b6570', 'hex')
/** The other form of CKA_EC_PARAMS, curveName, a PrintableString (PKCS#11, EC parameters): pkcs11-tool makes such keys. */
const curveName = Buffer.concat([Buffer.of(0x13, 12), Buffer.from('edwards25519')])
const jwk = 'Ed25519'
const seedBytes = 32
const signatureBytes = 64

/** node:crypto's form of a seed (PKCS#8, RFC 8410 section 7); the intermediate bytes are wiped. */
export function seedKey(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  try {
    return privateKeyOf(der)
  } finally {
    der.fill(0)
  }
}

/** The key out of its seed, which the pair then owns. @throws ApiError 400 */
export function ed25519Pair(seed: Buffer): Pair {
  if (seed.length !== seedBytes) throw malformed('an Ed25519 seed has 32 bytes')
  return { algorithm: ed25519, inner: seed, publicKey: createPublicKey(seedKey(seed)) }
}

/** RFC 8410's OCTET STRING, or the seed in an ECPrivateKey, or bare. */
function readSeed(inner: Buffer): Buffer {
  if (inner.length === seedBytes) return inner
  if (inner[0] !== asn1.sequence) return readOne(inner, asn1.octetString)
  return expect(readAll(readOne(inner, asn1.sequence))[1], asn1.octetString)
}

const publicKey: PublicKeyForm = {
  type: 'ed25519',
  parameters: { ecParameters: oid },
  attributes: ['ecPoint'],
  onPrivate: false,
  bits: ({ ecPoint }) => (ecPoint?.length === 32 ? ecPoint : undefined),
  check(key) {
    if (isKeyPoint(pointOf(key))) return
    throw badRequest('error parsing asymmetric key: its point is not on the curve, or of small order')
  },
}

const privateKey: PrivateKeyForm = {
  family: 'ed25519',
  identifier: oid,
  read: (inner) => ed25519Pair(Buffer.from(readSeed(inner))),
  readable: {
    ability: 'read-ed25519',
    attributes: ['value'],
    inner: ({ value }) => (value?.length === seedBytes ? Buffer.from(value) : undefined),
    copy: (inner) => Buffer.from(readSeed(inner)),
  },
  // CurvePrivateKey of RFC 8410 is an OCTET STRING of its own.
  write: (inner) => write(asn1.octetString, inner),
  creation: { ability: 'create-ed25519', attributes: { ecParameters: oid } },
}

/** Pure Ed25519 (RFC 8032); RFC 8410 section 3 for its identifier. */
const signature: Signature = {
  hashes: false,
  certification: { algorithm: write(asn1.sequence, oid), scheme: certificationScheme('sha2-256') },
  request: (message) => ({ mechanism: { type: CKM.EDDSA }, message, bytes: signatureBytes }),
  onHost: (seed, input) => signOnHost(null, input, seedKey(seed)),
  verify: (key, input, bytes) => verifyOnHost(null, input, key, bytes),
}

export const ed25519: Ed25519 = {
  name: 'ed25519',
  kind: 'ed25519',
  class: 'private',
  slow: false,
  weak: false,
  made: true,
  ecParameters: oid,
  jwk,
  sizeBytes: seedBytes,
  keyType: CKK.EC_EDWARDS,
  generation: CKM.EC_EDWARDS_KEY_PAIR_GEN,
  mechanism: CKM.EDDSA,
  using: 'eddsa',
  wrapping: 'wrap-ed25519',
  abilities: { encrypt: false, sign: true, derive: true },
  usages: ['sign'],
  hostable: true,
  entry: 'ed25519',
  exports: { 'signing-key': 'seed', 'public-key': 'point' },
  fips: false,
  publicKey,
  privateKey,
  signature,
  matches: ({ ecParameters }) => [oid, curveName].some((form) => ecParameters?.equals(form)),
}
