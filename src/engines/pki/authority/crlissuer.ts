import { createHash } from 'node:crypto'
import type { Certificate } from '../../../x509/certificate.ts'

const known = new WeakMap<object, string>()

/**
 * Identifies the signer of a list, in hexadecimal: SHA-256 over name and key. Issuers of the same name and key, in any
 * mount, share their revocations and their CRL numbers (RFC 5280 section 5.2.3); one that is deleted and imported again
 * continues them.
 */
export function crlIssuerOf(certificate: Pick<Certificate, 'subject' | 'spki'>): string {
  const found = known.get(certificate)
  if (found !== undefined) return found
  const { subject, spki } = certificate
  const made = createHash('sha256').update(subject).update(spki).digest('hex')
  known.set(certificate, made)
  return made
}
