import { ApiError, badRequest } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { DamagedRow } from '../../../store/faults.ts'
import { readBundle } from '../../../x509/bundle.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { withColons } from '../../../x509/serial.ts'
import type { Authority } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { damagedCertificate, describeDifferences, examine } from '../certificates/examine.ts'
import { type CertificateRow, certificateTable } from '../certificates/tables.ts'
import { hasKey } from '../publication/groups.ts'
import { issuerThatSigned } from './signedby.ts'

/** A certificate that may be revoked here, proved by its own bytes and the signature over them. */
export interface Revocable {
  readonly certificate: Certificate
  /** Uuid of the row of its issuer. */
  readonly issuer: string
  /** Null if its issuer was deleted, so that no list can name it yet. */
  readonly crlIssuer: string | null
}

const shortest = 75

/** Reads the certificate of a request, PEM. @throws ApiError 400 */
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
  throw badRequest('certificate must be exactly one certificate in PEM')
}

/**
 * Verifies the certificate of a request. The issuer's key must be in the mount: anybody can import the certificate of a
 * CA, and lists belong to the CA, not to a mount.
 * @throws ApiError 400 when no such issuer has signed it
 */
export async function verifyPresented(authority: Authority, certificate: Certificate): Promise<Revocable> {
  const issuer = await issuerThatSigned(authority, certificate)
  if (issuer === undefined || !hasKey(authority, issuer)) {
    throw badRequest(
      'unable to verify signature on presented cert from any present issuer in this mount; certificates from previous CAs will need to have their issuing CA and key re-imported if revocation is necessary',
    )
  }
  return { certificate, issuer: issuer.row.id, crlIssuer: crlIssuerOf(issuer.certificate) }
}

/**
 * Verifies a stored certificate. Where its row differs from the certificate, the certificate counts, and an error is
 * logged.
 * @throws DamagedRow when no issuer of the mount has signed the bytes
 */
export async function verifyStored(authority: Authority, row: CertificateRow, log: Logger): Promise<Revocable> {
  const { certificate, issuer: named, differences } = examine(row, authority.issuers)
  if (certificate === undefined || differences.has('serial')) throw damagedCertificate(row, differences)
  const own = crlIssuerOf(certificate)
  const isNamed = named !== undefined && crlIssuerOf(named.certificate) !== own
  const signer = isNamed ? named : await issuerThatSigned(authority, certificate)
  // A root is its own issuer and on no list, so its signature does not matter.
  const isMisnamed = differences.has('issuer') && crlIssuerOfRow(authority, row) !== own
  if (signer === undefined && isMisnamed) throw damagedCertificate(row, differences)
  if (differences.has('end') || isMisnamed) {
    log.error(
      { table: certificateTable.name, id: row.id, reason: describeDifferences(differences) },
      'a stored certificate differs from its row, which was edited',
    )
  }
  const crlIssuer = signer === undefined ? null : crlIssuerOf(signer.certificate)
  return { certificate, issuer: signer?.row.id ?? row.issuer, crlIssuer }
}

/** Undefined if the issuer named in the row was deleted. */
function crlIssuerOfRow({ issuers }: Authority, { issuer: id }: CertificateRow): string | undefined {
  const issuer = issuers.get(id)
  return issuer && crlIssuerOf(issuer.certificate)
}

/** The refusal of a request that names a stored certificate; a caller who has the certificate itself needs no row. */
export const refusalOf = (error: DamagedRow, serial: Buffer): ApiError =>
  new ApiError(
    500,
    `the stored certificate ${withColons(serial)} was edited in the database: send the certificate itself in \`certificate\` to revoke it`,
    { cause: error },
  )
