import { type Certificate, readCertificate } from '../../../x509/certificate.ts'
import { isSignedBy } from '../../../x509/chain.ts'
import { Malformed } from '../../../x509/malformed.ts'
import type { Authority } from '../authority/authority.ts'
import type { CertificateRow } from './tables.ts'

/**
 * Why a stored certificate is not what its row says; undefined when it is. Rows are not sealed: the signature of the issuer is
 * what holds, where the mount still has that issuer.
 */
export function mismatchOf(
  { der, serial, notAfter, issuer }: CertificateRow,
  { issuers }: Pick<Authority, 'issuers'>,
): string | undefined {
  const certificate = readable(der)
  if (certificate === undefined) return 'it is no certificate'
  if (certificate.serial.toString('hex') !== serial) return 'it has another serial number'
  if (certificate.notAfter !== wholeSeconds(notAfter)) return 'it expires at another time'
  const parent = issuers.get(issuer)
  if (parent !== undefined && !isSignedBy(certificate, parent.certificate)) return 'its issuer has not signed it'
  return undefined
}

const wholeSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000) * 1000

function readable(der: Buffer): Certificate | undefined {
  try {
    return readCertificate(der)
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}
