import { createPublicKey, constants as crypto, type KeyObject, randomBytes, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { privateKeyOf } from '../../../crypto/privatekey.ts'
import { badRequest } from '../../../errors.ts'
import { readBundle } from '../../../x509/bundle.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { readSubjectKey, type SubjectKey } from '../../../x509/publickey.ts'

const signAsync = promisify(sign)

const shortest = 64
const challengeBytes = 32
/** Room for the identifiers and attributes of PKCS#8 besides the numbers of the key. */
const besideNumbersBytes = 1024
/**
 * An RSA key has two numbers as long as its modulus and five half as long; the numbers of other keys are shorter than
 * their public half.
 */
const timesPublicHalf = 5

const otherType = "provided private key type does not match certificate's public key type"
const otherKey = "provided private key does not match certificate's public key"

/**
 * Reads the private key of a request: PKCS#1, SEC 1 or PKCS#8 in PEM, not encrypted.
 * @returns PKCS#8, which the caller wipes
 * @throws ApiError 400, which reveals nothing of the key
 */
export async function readPrivateKey(pem: string): Promise<Buffer> {
  if (pem.length < shortest) {
    throw badRequest(
      'Provided data for private_key was too short; perhaps a path was passed to the API rather than the contents of a PEM file?',
    )
  }
  try {
    const { keys, certificates } = await readBundle(pem)
    const [only, ...more] = keys
    if (only !== undefined && more.length === 0 && certificates.length === 0) return only.pkcs8
    for (const { pkcs8 } of keys) pkcs8.fill(0)
  } catch (error) {
    if (error instanceof Malformed) throw badRequest(`private_key: ${error.message}`)
    throw error
  }
  throw badRequest('private_key must be exactly one private key in PEM')
}

/**
 * Proves that a private key belongs to a certificate, by a signature over random bytes: the public half stored beside a
 * private key proves nothing.
 * @param pkcs8 wiped by the caller
 * @throws ApiError 400
 */
export async function provePossession({ spki, publicKey }: Certificate, pkcs8: Buffer): Promise<void> {
  const certified = readSubjectKey(spki)
  const privateKey = importPrivateKey(pkcs8)
  const claimed = publicHalf(privateKey)
  if (claimed?.family !== certified.family) throw badRequest(otherType)
  if (!claimed.encoded.equals(certified.encoded)) throw badRequest(otherKey)
  // Checked before computing with numbers chosen by the caller.
  if (pkcs8.length > besideNumbersBytes + timesPublicHalf * certified.encoded.length) throw badRequest(otherKey)
  const challenge = randomBytes(challengeBytes)
  const { hash, options } = schemeOf(certified, publicKey())
  try {
    const signature = await signAsync(hash, challenge, { key: privateKey, ...options })
    if (verify(hash, challenge, { key: publicKey(), ...options }, signature)) return
  } catch {
    // The numbers do not form a key; the error could repeat them.
  }
  throw badRequest(otherKey)
}

function importPrivateKey(pkcs8: Buffer): KeyObject {
  try {
    return privateKeyOf(pkcs8)
  } catch {
    throw badRequest('private_key: its numbers do not form a valid key')
  }
}

/** Undefined for a kind of key that certificates here cannot have. */
function publicHalf(privateKey: KeyObject): SubjectKey | undefined {
  try {
    return readSubjectKey(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }))
  } catch {
    return undefined
  }
}

/** PSS with the hash that the key is bound to, since a key for PSS alone makes no other signatures. */
function schemeOf({ family }: SubjectKey, { asymmetricKeyDetails: details }: KeyObject) {
  if (family === 'ed25519') return { hash: null, options: {} }
  const hash = details?.hashAlgorithm ?? 'sha256'
  if (family === 'ec') return { hash, options: {} }
  return { hash, options: { padding: crypto.RSA_PKCS1_PSS_PADDING, saltLength: crypto.RSA_PSS_SALTLEN_DIGEST } }
}
