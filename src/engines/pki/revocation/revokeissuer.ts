import type { Clock } from '../../../clock.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { isSelfSigned } from '../../../x509/chain.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import type { IssuerRows } from '../authority/issuerrows.ts'
import { issuerOf } from '../authority/references.ts'
import { certificateTable, type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { hasKey } from '../publication/groups.ts'
import { refuseAnother } from './another.ts'
import type { Publication } from './publication.ts'
import type { Revocations } from './revocations.ts'
import { issuerThatSigned } from './signedby.ts'

interface IssuerRevocation {
  readonly database: Database
  readonly clock: Clock
  readonly authorities: Authorities
  readonly issuerRows: IssuerRows
  readonly revocations: Revocations
  readonly publication: Publication
}

/**
 * Revokes an issuer permanently: it issues no more, and if its parent is an issuer with a key in the mount, the parent's
 * list names it. Its own list never does. Repeating it repairs an interrupted revocation.
 * @returns the authority and the issuer afterwards
 * @throws ApiError 400 for an unknown issuer, or when another certificate of its serial number is on a list
 */
export async function revokeIssuer(
  options: IssuerRevocation,
  mount: Pick<Mount, 'uuid'>,
  reference: string,
  warn: (text: string) => void,
): Promise<{ readonly authority: Authority; readonly issuer: Issuer }> {
  const { authorities, issuerRows, clock, publication } = options
  const before = await authorities.of(mount)
  const found = issuerOf(before, reference)
  const parent = await issuerThatSigned(before, found.certificate)
  // Record first: once an issuer shows as revoked, its revocation is recorded for its parent's list.
  const recordedAt = await record(options, before, found, parent)
  const { authority } = await authorities.change(mount, async (tx, now) => {
    const { row } = issuerOf(now, found.row.id)
    if (row.revokedAt !== null) return { result: undefined }
    const usages = row.usages.filter((usage) => usage !== 'issuing-certificates')
    await issuerRows.update(tx, row, { usages, revokedAt: recordedAt ?? clock.wall() })
    return { result: undefined }
  })
  const issuer = issuerOf(authority, found.row.id)
  warnOf(authority, issuer, parent, warn)
  for (const warning of await publication.rebuild(mount)) warn(warning)
  return { authority, issuer }
}

/**
 * @returns the time of the revocation, or undefined if there is nothing to record: neither a parent nor a stored
 *   certificate
 * @throws ApiError 400 when the mount has recorded the revocation of another certificate with its serial number
 */
async function record(
  { database, authorities, revocations }: IssuerRevocation,
  authority: Authority,
  { certificate }: Issuer,
  parent: Issuer | undefined,
): Promise<number | undefined> {
  const name = { mount: authority.settings.mount, serial: certificate.serial.toString('hex') }
  const [stored, before] = await database.read((q) =>
    Promise.all([database.table(certificateTable).find(q, name), database.table(revocationTable).find(q, name)]),
  )
  if (parent === undefined && !stored?.der.equals(certificate.der)) return undefined
  // A parent whose key is elsewhere publishes through another mount.
  const crlIssuer = parent !== undefined && hasKey(authority, parent) ? crlIssuerOf(parent.certificate) : null
  // A self-signed certificate is on no list: the revocation of a cross-certificate of it takes nothing from it.
  const refuse = (row: RevocationRow | undefined) => {
    if (parent !== undefined) refuseAnother({ certificate, crlIssuer }, row)
  }
  refuse(before)
  const recorded = await revocations.record({
    ...name,
    site: authorities.site,
    issuer: parent?.row.id ?? '',
    crlIssuer,
    notAfter: certificate.notAfter,
    reason: null,
  })
  // Another request may have recorded another certificate meanwhile.
  refuse(recorded)
  return recorded.revokedAt
}

function warnOf(
  authority: Authority,
  { row: { id }, certificate }: Issuer,
  parent: Issuer | undefined,
  warn: (text: string) => void,
): void {
  if (isSelfSigned(certificate)) {
    warn(`Issuer ${id} is self-signed: no list can show its revocation; tell relying parties to stop trusting it.`)
  } else if (parent === undefined) {
    warn(
      `No issuer of this mount has signed issuer ${id}: no list of this mount shows its revocation; revoke it at the CA that signed it too.`,
    )
  } else if (!hasKey(authority, parent)) {
    warn(
      `The key of issuer ${parent.row.id}, which has signed issuer ${id}, is not in this mount: no list here names issuer ${id}; revoke it where that key is, too.`,
    )
  }
  if (authority.settings.defaultIssuer === id) {
    warn(
      `Issuer ${id} is the default issuer: requests that use the default issuer fail until another issuer is the default.`,
    )
  }
}
