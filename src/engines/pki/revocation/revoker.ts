import type { Clock } from '../../../clock.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import type { Logger } from '../../../log.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { DamagedRow, DuplicateRow } from '../../../store/faults.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { withColons } from '../../../x509/serial.ts'
import type { Authorities } from '../authority/authorities.ts'
import type { Authority } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import type { Certificates } from '../certificates/certificates.ts'
import { leasedCertificate } from '../certificates/lease.ts'
import { type CertificateRow, certificateTable, type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { crlSettingsOf } from '../publication/settings.ts'
import { provePossession } from './possession.ts'
import type { Publication } from './publication.ts'
import type { RevocationRequests } from './requests.ts'
import { type Revocable, refusalOf, verifyPresented, verifyStored } from './revocable.ts'
import type { NewRevocation, Revocations } from './revocations.ts'

type MountId = Pick<Mount, 'uuid'>

/** What a request may say of a revocation. */
export interface Wish {
  /** CRLReason; null is unspecified. */
  readonly reason: number | null
  /** PKCS#8: the certificate is revoked only if this is its key. The caller wipes it. */
  readonly privateKey?: Buffer | undefined
}

/**
 * What became of it: `revoked` here, and why no list will say so; `elsewhere`, by another site; `pending`, asked of the other sites; `expired`, so that nothing
 * was recorded.
 */
export type Outcome =
  | { readonly state: 'revoked'; readonly row: RevocationRow; readonly unlisted: string | undefined }
  | { readonly state: 'elsewhere'; readonly row: RevocationRow }
  | { readonly state: 'pending' | 'expired' }

export interface RevokerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly site: string
  readonly authorities: Authorities
  readonly certificates: Certificates
  readonly revocations: Revocations
  readonly requests: RevocationRequests
  readonly publication: Publication
}

/** What the database has of a serial number, of whichever site. */
interface Found {
  readonly serial: Buffer
  readonly certificate: CertificateRow | undefined
  readonly revocation: RevocationRow | undefined
}

/** A certificate that ends within this time is not revoked any more: its lease ends up to a second before it. */
const endingMilliseconds = 2000

/** Revokes certificates. When it resolves the revocation is recorded, in no cache any more, and published. */
export class Revoker {
  readonly #options: RevokerOptions

  constructor(options: RevokerOptions) {
    this.#options = options
  }

  /**
   * @param serial magnitude
   * @throws ApiError 400 for a certificate that is not known, an issuer's own, or another's key
   */
  async bySerial(mount: MountId, serial: Buffer, wish: Wish): Promise<Outcome> {
    const { log, site } = this.#options
    const authority = await this.#options.authorities.of(mount)
    refuseIssuer(authority, serial)
    const found = await this.#find(mount, serial)
    const { certificate, revocation } = found
    if (certificate === undefined && revocation?.site === site && wish.privateKey === undefined) {
      return this.#record(mount, revocation)
    }
    if (certificate?.site !== site) return this.#elsewhere(mount, authority, found, wish)
    const revocable = await verifyStored(authority, certificate, log).catch((error: unknown) => {
      throw error instanceof DamagedRow ? refusalOf(error, serial) : error
    })
    if (wish.privateKey !== undefined) await provePossession(revocable.certificate, wish.privateKey)
    return this.#decide(mount, authority, revocable, { ...wish, recorded: revocation !== undefined })
  }

  /**
   * A certificate that the request brings, which is stored if it is not yet.
   * @throws ApiError 400 when no issuer of the mount has signed it, or another one with its serial number is stored
   */
  async byCertificate(mount: MountId, certificate: Certificate, wish: Wish): Promise<Outcome> {
    const authority = await this.#options.authorities.of(mount)
    refuseIssuer(authority, certificate.serial)
    const revocable = await verifyPresented(authority, certificate)
    if (wish.privateKey !== undefined) await provePossession(certificate, wish.privateKey)
    try {
      return await this.#byPresented(mount, authority, revocable, wish)
    } catch (error) {
      // Somebody has stored it meanwhile.
      if (error instanceof DuplicateRow) return this.#byPresented(mount, authority, revocable, wish)
      throw error
    }
  }

  /** The certificate of a lease, unless it ends by itself. @param payload of the lease */
  async byLease({ uuid }: MountId, payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { authorities, clock } = this.#options
    const certificate = leasedCertificate(uuid, payload)
    if (certificate.notAfter <= clock.wall() + endingMilliseconds) return
    const { issuers } = await authorities.of({ uuid })
    const issuer = issuers.get(certificate.issuer)
    const crlIssuer = issuer === undefined ? null : crlIssuerOf(issuer.certificate)
    await this.#record({ uuid }, { ...certificate, crlIssuer, reason: null })
  }

  async #byPresented(mount: MountId, authority: Authority, revocable: Revocable, wish: Wish): Promise<Outcome> {
    const { site } = this.#options
    const { certificate } = revocable
    const found = await this.#find(mount, certificate.serial)
    const { certificate: stored, revocation } = found
    if (stored !== undefined) await this.#refuseOther(authority, certificate, stored)
    const owner = stored?.site ?? revocation?.site ?? site
    if (owner !== site) return this.#elsewhere(mount, authority, found, wish)
    const keep = stored === undefined
    return this.#decide(mount, authority, revocable, { ...wish, recorded: revocation !== undefined, keep })
  }

  /** One serial number is one certificate, unless its row was edited: then the one that an issuer has signed counts. */
  async #refuseOther(authority: Authority, { der }: Certificate, stored: CertificateRow): Promise<void> {
    if (stored.der.equals(der)) return
    const { log } = this.#options
    try {
      await verifyStored(authority, stored, log)
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error
      log.error({ err: error }, 'a stored certificate was edited')
      return
    }
    throw badRequest(
      "certificate with same serial but unequal value already present in this cluster's storage; refusing to revoke",
    )
  }

  async #decide(
    mount: MountId,
    authority: Authority,
    { certificate, issuer, crlIssuer }: Revocable,
    { reason, recorded, keep = false }: Wish & { readonly recorded: boolean; readonly keep?: boolean },
  ): Promise<Outcome> {
    const { clock, site, certificates } = this.#options
    const { serial, notAfter, der } = certificate
    const name = { mount: mount.uuid, serial: serial.toString('hex') }
    const expired = notAfter < clock.wall() + endingMilliseconds
    if (expired && !recorded && !crlSettingsOf(authority).allowExpiredCertRevocation) return { state: 'expired' }
    if (keep) await certificates.store({ ...name, issuer, der, notAfter })
    return this.#record(mount, { ...name, site, issuer, crlIssuer, notAfter, reason })
  }

  /** Recorded or not: whoever recorded it first may not have come to its publication. */
  async #record(mount: MountId, order: NewRevocation): Promise<Outcome> {
    const row = await this.#options.revocations.record(order)
    const unlisted = await this.#options.publication.revoked(mount, row)
    return { state: 'revoked', row, unlisted }
  }

  /** What another site may have: it says what became of it, or is asked to revoke it. */
  async #elsewhere(mount: MountId, authority: Authority, found: Found, wish: Wish): Promise<Outcome> {
    const { serial, certificate, revocation } = found
    const { unifiedCrl, crossClusterRevocation } = crlSettingsOf(authority)
    const shown = withColons(serial)
    const keyed = wish.privateKey !== undefined
    if (revocation !== undefined && unifiedCrl && !keyed) return { state: 'elsewhere', row: revocation }
    if (!crossClusterRevocation) {
      const owner = certificate && `site ${certificate.site} has it: revoke it there, or set cross_cluster_revocation`
      throw new ApiError(400, [`certificate with serial ${shown} not found.`, ...(owner ? [owner] : [])])
    }
    if (keyed) {
      throw badRequest(
        `certificate with serial ${shown} not found, and cross-cluster revocation not supported with key revocation.`,
      )
    }
    await this.#options.requests.ask({ mount: mount.uuid, serial: serial.toString('hex') })
    return { state: 'pending' }
  }

  async #find({ uuid: mount }: MountId, serial: Buffer): Promise<Found> {
    const { database } = this.#options
    const name = { mount, serial: serial.toString('hex') }
    const [certificate, revocation] = await database.read((q) =>
      Promise.all([database.table(certificateTable).find(q, name), database.table(revocationTable).find(q, name)]),
    )
    return { serial, certificate, revocation }
  }
}

/** Whatever signed it: serial numbers of issuers are theirs in the whole mount. @throws ApiError 400 */
function refuseIssuer(authority: Authority, serial: Buffer): void {
  for (const { row, certificate } of authority.issuers.values()) {
    if (!certificate.serial.equals(serial)) continue
    throw badRequest(
      `adding issuer (id: ${row.id}) to its own CRL is not allowed; an issuer is revoked by issuer/${row.id}/revoke`,
    )
  }
}
