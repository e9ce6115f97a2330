import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { isSelfSigned, isSignedBy } from '../../../x509/chain.ts'
import type { Authority } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { certificateTable, type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { issuerThatSigned } from '../revocation/signedby.ts'

interface Import {
  readonly database: Database
  /** The authority before the import. */
  readonly before: Authority
  /** All CA certificates of the import. */
  readonly imported: readonly Certificate[]
}

/**
 * When a mount revoked a CA certificate that is imported: deleting an issuer and importing it again does not undo its
 * revocation. One read where nothing was revoked under its serial number.
 * @returns undefined if it was not revoked
 */
export async function revokedBefore(
  tx: Transaction,
  { database, before, imported }: Import,
  certificate: Certificate,
): Promise<number | undefined> {
  const name = { mount: before.settings.mount, serial: certificate.serial.toString('hex') }
  const revocation = await database.table(revocationTable).find(tx, name)
  if (revocation === undefined || revocation.notAfter !== certificate.notAfter) return undefined
  const signer = isSelfSigned(certificate) ? certificate : await signerOf(certificate, before, imported)
  const recorded = signerIn(revocation, before)
  const isRevoked = async () => {
    if (signer !== undefined && recorded !== undefined) return crlIssuerOf(signer) === recorded
    // One of the two signers is not here to compare. A root never has a recorded one, and its cross-certificates do.
    if (revocation.issuer !== '') return signer !== certificate
    // Without a parent, a revocation is recorded only for a stored certificate.
    const stored = await database.table(certificateTable).find(tx, name)
    return stored === undefined || stored.der.equals(certificate.der)
  }
  return (await isRevoked()) ? revocation.revokedAt : undefined
}

async function signerOf(
  certificate: Certificate,
  before: Authority,
  imported: readonly Certificate[],
): Promise<Certificate | undefined> {
  const known = await issuerThatSigned(before, certificate)
  return known?.certificate ?? imported.find((parent) => parent !== certificate && isSignedBy(certificate, parent))
}

/** The CRL issuer of a revocation, also where the key of that issuer is elsewhere. */
function signerIn({ crlIssuer, issuer }: RevocationRow, { issuers }: Authority): string | undefined {
  const named = issuers.get(issuer)
  return crlIssuer ?? (named && crlIssuerOf(named.certificate))
}
