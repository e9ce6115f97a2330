import { writePem } from '../../../crypto/pem.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import type { Issuer } from './authority.ts'

const texts = new WeakMap<Certificate, string>()

/** PEM of a CA certificate, without a newline at its end; made once, since every answer of issuing has it. */
export function pemOf(certificate: Certificate): string {
  const known = texts.get(certificate)
  if (known !== undefined) return known
  const text = writePem('CERTIFICATE', certificate.der)
  texts.set(certificate, text)
  return text
}

/** As answers about one issuer show it; those about the default issuer end without the newline. */
export const pemLine = ({ certificate }: Issuer): string => `${pemOf(certificate)}\n`
