import { createPrivateKey, type KeyObject } from 'node:crypto'
import { asn1, expect, readAll, readOne } from './der.ts'
import { clearErrorQueue } from './errorqueue.ts'
import { withoutStackTraces } from './stacktraces.ts'

/** The forms of private keys in files other than PKCS#8. */

const rsaEncryption = '2a864886f70d010101'
const ecPublicKey = '2a8648ce3d0201'

export interface PrivateKeyFile {
  /** The label of its PEM block. */
  readonly label: 'RSA PRIVATE KEY' | 'EC PRIVATE KEY' | 'PRIVATE KEY'
  /** DER. A view into the PKCS#8, wiped together with it. */
  readonly der: Buffer
}

/**
 * The key in its form before PKCS#8: RSAPrivateKey (RFC 8017 A.1.2) or ECPrivateKey (RFC 5915). Keys without such a
 * form (Ed25519) stay PKCS#8.
 * @param pkcs8 PrivateKeyInfo without attributes, DER @throws NotDer
 */
export function traditionalForm(pkcs8: Buffer): PrivateKeyFile {
  const [, identifier, key] = readAll(readOne(pkcs8, asn1.sequence))
  const [name] = readAll(expect(identifier, asn1.sequence))
  const algorithm = expect(name, asn1.oid).toString('hex')
  const der = expect(key, asn1.octetString)
  if (algorithm === rsaEncryption) return { label: 'RSA PRIVATE KEY', der }
  if (algorithm === ecPublicKey) return { label: 'EC PRIVATE KEY', der }
  return { label: 'PRIVATE KEY', der: pkcs8 }
}

/** A private key for node:crypto. @param pkcs8 DER, which the caller wipes @throws Error when it makes no key */
export function privateKeyOf(pkcs8: Buffer): KeyObject {
  clearErrorQueue()
  return withoutStackTraces(() => createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }))
}
