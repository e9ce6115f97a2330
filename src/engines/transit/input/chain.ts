import { type KeyObject, X509Certificate } from 'node:crypto'
import { readPem, writePem } from '../../../crypto/pem.ts'
import { badRequest } from '../../../errors.ts'
import { decodePublicKey } from '../../../keys/publickey.ts'

const mostCertificates = 20

/** Reads the chain of a key version: its certificate first, then those of the issuers. @throws ApiError 400 */
export function readChain(pem: string | undefined, key: KeyObject): string {
  const blocks = readPem(pem ?? '', ['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE'])
  if (blocks.length === 0) throw badRequest('certificate_chain must hold at least one certificate in PEM')
  if (blocks.length > mostCertificates) throw refuse(`it has more than ${mostCertificates} certificates`)
  const certificates = blocks.map((der, index) => {
    try {
      return new X509Certificate(der)
    } catch (error) {
      throw refuse(`certificate ${index + 1} is malformed`, error)
    }
  })
  const [leaf, ...issuers] = certificates
  if (leaf === undefined || leaf.ca) throw refuse('certificate in the first position is not a leaf certificate')
  if (issuers.some(({ ca }) => !ca)) throw refuse('a certificate after the first is not a CA certificate')
  if (!sameKey(leaf, key)) throw refuse('leaf certificate public key does not match the selected key version')
  return certificates.map(({ raw }) => writePem('CERTIFICATE', raw)).join('\n')
}

/** The chain of a version in a backup. @param spki its public key; null for a secret key @throws ApiError 400 */
export function restoredChain(pem: string, spki: Buffer | null | undefined): string {
  if (spki == null) throw refuse('a secret key has no certificate chain')
  return readChain(pem, decodePublicKey(spki))
}

const refuse = (why: string, cause?: unknown) => badRequest(`failed to persist certificate chain: ${why}`, { cause })

/** A key whose algorithm OpenSSL does not know matches no other. */
function sameKey(leaf: X509Certificate, key: KeyObject): boolean {
  try {
    return leaf.publicKey.equals(key)
  } catch {
    return false
  }
}
