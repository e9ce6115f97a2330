import { DamagedRow } from '../../../store/faults.ts'
import { type Certificate, readCertificate } from '../../../x509/certificate.ts'
import { isSignedBy } from '../../../x509/chain.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { type CertificateRow, certificateTable } from './tables.ts'

/** The ways in which a stored row can differ from its certificate. */
const differences = {
  bytes: 'it is not a certificate',
  serial: 'it has another serial number',
  end: 'it expires at another time',
  issuer: 'its issuer has not signed it',
} as const
export type Difference = keyof typeof differences

/** The result of examining a stored row. */
export interface Examination<I> {
  /** Undefined if the bytes are not a certificate. */
  readonly certificate: Certificate | undefined
  /** The issuer named in the row, if the mount has it and it has signed the certificate. */
  readonly issuer: I | undefined
  /** Empty if the row is right; its issuer is compared only while the mount has it. */
  readonly differences: ReadonlySet<Difference>
}

/**
 * Compares a stored row with its certificate, and the signature with the issuer named in the row. Rows of certificates
 * are not sealed: the issuer's signature is the proof. The caller decides what a difference means.
 * @param issuers of the mount, by id
 */
export function examine<I extends { readonly certificate: Certificate }>(
  { der, serial, notAfter, issuer: id }: Pick<CertificateRow, 'der' | 'serial' | 'notAfter' | 'issuer'>,
  issuers: ReadonlyMap<string, I>,
): Examination<I> {
  const certificate = readable(der)
  if (certificate === undefined) return { certificate, issuer: undefined, differences: new Set(['bytes']) }
  const named = issuers.get(id)
  const hasSigned = named !== undefined && isSignedBy(certificate, named.certificate)
  const found = new Set<Difference>()
  if (certificate.serial.toString('hex') !== serial) found.add('serial')
  if (certificate.notAfter !== notAfter) found.add('end')
  if (named !== undefined && !hasSigned) found.add('issuer')
  return { certificate, issuer: hasSigned ? named : undefined, differences: found }
}

function readable(der: Buffer): Certificate | undefined {
  try {
    return readCertificate(der)
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

/** The differences as a clause about the certificate. */
export const describeDifferences = (found: ReadonlySet<Difference>): string =>
  [...found].map((difference) => differences[difference]).join(', ')

/** The error for a stored certificate that differs from its row. */
export const damagedCertificate = ({ id }: CertificateRow, found: ReadonlySet<Difference>): DamagedRow =>
  new DamagedRow(certificateTable.name, id, `the stored certificate was edited: ${describeDifferences(found)}`)
