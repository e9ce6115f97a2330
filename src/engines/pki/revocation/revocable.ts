import { ApiError, badRequest } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import { DamagedRow } from '../../../store/faults.ts'
import { readBundle } from '../../../x509/bundle.ts'
import { type Certificate, readCertificate } from '../../../x509/certificate.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { withColons } from '../../../x509/serial.ts'
import type { Authority } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { type CertificateRow, certificateTable } from '../certificates/tables.ts'
import { issuerThatSigned } from './signedby.ts'

/** A certificate that may be revoked here, by its own bytes and the signature over them. */
export interface Revocable {
  readonly certificate: Certificate
  /** Uuid of the row of its issuer. */
  readonly issuer: string
  /** Null where its issuer was deleted, so that no list can name it yet. */
  readonly crlIssuer: string | null
}

const shortest = 75

/** The certificate of a request, PEM. @throws ApiError 400 */
export async function readPresented(pem: string): Promise<Certificate> {
  if (pem.length < shortest) {
    throw badRequest(
      'provided certificate data was too short; perhaps a path was passed to the API rather than the contents of a PEM file',
    )
  }
  if (!pem.includes('-----BEGIN ')) throw badRequest('certificate contains no PEM data')
  try {
    const { certificates, keys } = await readBundle(pem)
    for (const { pkcs8 } of keys) pkcs8.fill(0)
    const [only, ...more] = certificates
    if (only !== undefined && more.length === 0 && keys.length === 0) return only
  } catch (error) {
    if (error instanceof Malformed) throw badRequest(`certificate could not be parsed: ${error.message}`)
    throw error
  }
  throw badRequest('certificate: one certificate in PEM, and nothing else')
}

/** A certificate that came with the request. @throws ApiError 400 when no issuer of the mount has signed it */
export async function verifyPresented(authority: Authority, certificate: Certificate): Promise<Revocable> {
  const issuer = await issuerThatSigned(authority, certificate)
  if (issuer === undefined) {
    throw badRequest(
      'unable to verify signature on presented cert from any present issuer in this mount; certificates from previous CAs will need to have their issuing CA and key re-imported if revocation is necessary',
    )
  }
  return { certificate, issuer: issuer.row.id, crlIssuer: crlIssuerOf(issuer.certificate) }
}

/**
 * A stored certificate. What its row says besides the certificate is not believed: where they differ the certificate counts, and
 * the log has an error.
 * @throws DamagedRow when the bytes are not what an issuer of the mount has signed
 */
export async function verifyStored(authority: Authority, row: CertificateRow, log: Logger): Promise<Revocable> {
  const certificate = readStored(row)
  if (certificate.serial.toString('hex') !== row.serial) throw damaged(row, 'its certificate has another serial number')
  const issuer = await issuerThatSigned(authority, certificate, row.issuer)
  const named = crlIssuerOfRow(authority, row)
  const signer = issuer === undefined ? null : crlIssuerOf(issuer.certificate)
  const ownRoot = signer === null && named === crlIssuerOf(certificate)
  if (signer === null && named !== null && !ownRoot) throw damaged(row, 'its issuer has not signed it')
  if (certificate.notAfter !== row.notAfter || (signer !== named && !ownRoot)) {
    log.error(
      { table: certificateTable.name, id: row.id },
      'a stored certificate differs from its row, which was edited',
    )
  }
  return { certificate, issuer: issuer?.row.id ?? row.issuer, crlIssuer: signer }
}

/** Null where the issuer that the row names was deleted. */
function crlIssuerOfRow(authority: Authority, { issuer: id }: CertificateRow): string | null {
  const issuer = authority.issuers.get(id)
  return issuer === undefined ? null : crlIssuerOf(issuer.certificate)
}

function readStored(row: CertificateRow): Certificate {
  try {
    return readCertificate(row.der)
  } catch (error) {
    throw error instanceof Malformed ? damaged(row, error.message) : error
  }
}

const damaged = (row: CertificateRow, reason: string): DamagedRow =>
  new DamagedRow(certificateTable.name, row.id, reason)

/** For a request that is about a stored certificate: who has the certificate itself needs no row. */
export const refusalOf = (error: DamagedRow, serial: Buffer): ApiError =>
  new ApiError(
    500,
    `the stored certificate ${withColons(serial)} was edited in the database: revoke it by \`certificate\` instead of its serial number`,
    { cause: error },
  )
