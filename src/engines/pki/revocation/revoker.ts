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
import { refuseAnother } from './another.ts'
import { provePossession } from './possession.ts'
import type { Publication } from './publication.ts'
import type { RevocationRequests } from './requests.ts'
import { type Revocable, refusalOf, verifyPresented, verifyStored } from './revocable.ts'
import type { NewRevocation, Revocations } from './revocations.ts'

type MountId = Pick<Mount, 'uuid'>

/** The options of a revocation request. */
export interface Wish {
  /** CRLReason; null is unspecified. */
  readonly reason: number | null
  /** PKCS#8: the certificate is revoked only if this is its key. The caller wipes it. */
  readonly privateKey?: Buffer | undefined
}

/**
 * The outcome: `revoked` here, with a reason if no list will name it; `elsewhere`, by another site; `pending`,
 * requested of the other sites; `expired`, nothing was recorded.
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

/** The stored rows of a serial number, of any site. */
interface Found {
  readonly serial: Buffer
  readonly certificate: CertificateRow | undefined
  readonly revocation: RevocationRow | undefined
}

/** A certificate that ends within this time is not revoked any more: its lease ends up to a second earlier. */
const endingMilliseconds = 2000

/**
 * Revokes certificates. When it resolves the revocation is recorded, no cache holds the old status, and it is
 * published.
 */
export class Revoker {
  readonly #options: RevokerOptions

  constructor(options: RevokerOptions) {
    this.#options = options
  }

  /**
   * @param serial magnitude
   * @throws ApiError 400 for an unknown certificate, an issuer's certificate, or the private key of another certificate
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
    refuseAnother(revocable, revocation)
    return this.#decide(mount, authority, revocable, { ...wish, recorded: revocation !== undefined })
  }

  /**
   * Revokes the certificate of a request; it is stored if it was not before.
   * @throws ApiError 400 when no issuer of the mount has signed it, or a different one with its serial number is stored
   */
  async byCertificate(mount: MountId, certificate: Certificate, wish: Wish): Promise<Outcome> {
    const authority = await this.#options.authorities.of(mount)
    refuseIssuer(authority, certificate.serial, certificate)
    const revocable = await verifyPresented(authority, certificate)
    if (wish.privateKey !== undefined) await provePossession(certificate, wish.privateKey)
    try {
      return await this.#byPresented(mount, authority, revocable, wish)
    } catch (error) {
      // Another request has stored it meanwhile.
      if (error instanceof DuplicateRow) return this.#byPresented(mount, authority, revocable, wish)
      throw error
    }
  }

  /** Revokes the certificate of a lease, unless it is about to expire. @param payload of the lease */
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
    refuseAnother(revocable, revocation)
    const owner = stored?.site ?? revocation?.site ?? site
    if (owner !== site) return this.#elsewhere(mount, authority, found, wish)
    const keep = stored === undefined
    return this.#decide(mount, authority, revocable, { ...wish, recorded: revocation !== undefined, keep })
  }

  /**
   * A serial number belongs to one certificate, unless its row was edited: then the one that an issuer has signed
   * counts.
   */
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

  /** Also if already recorded: the request that recorded it may not have published it. */
  async #record(mount: MountId, order: NewRevocation): Promise<Outcome> {
    const row = await this.#options.revocations.record(order)
    const unlisted = await this.#options.publication.revoked(mount, row)
    return { state: 'revoked', row, unlisted }
  }

  /** A certificate that another site may have: its outcome there, or a request to revoke it. */
  async #elsewhere(mount: MountId, authority: Authority, found: Found, wish: Wish): Promise<Outcome> {
    const { serial, certificate, revocation } = found
    const { unifiedCrl, crossClusterRevocation } = crlSettingsOf(authority)
    const shown = withColons(serial)
    const keyed = wish.privateKey !== undefined
    if (revocation !== undefined && unifiedCrl && !keyed) return { state: 'elsewhere', row: revocation }
    if (!crossClusterRevocation) {
      const owner = certificate && `site ${certificate.site} has it; revoke it there or set cross_cluster_revocation`
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

/**
 * No certificate, of any CA, may share the serial number of an issuer of the mount.
 * @param given the certificate of the request, if it brought one
 * @throws ApiError 400
 */
function refuseIssuer({ issuers }: Authority, serial: Buffer, given?: Certificate): void {
  const twins = [...issuers.values()].filter(({ certificate }) => certificate.serial.equals(serial))
  const meant = given === undefined ? twins : twins.filter(({ certificate }) => certificate.der.equals(given.der))
  const [first] = meant.length > 0 ? meant : twins
  if (first === undefined) return
  const refusal = `adding issuer (id: ${first.row.id}) to its own CRL is not allowed`
  if (meant.length > 0) {
    throw badRequest(
      `${refusal}; revoke the issuer by ${meant.map(({ row }) => `issuer/${row.id}/revoke`).join(' or ')}`,
    )
  }
  const advice = given?.isCa
    ? 'import it as an issuer, and revoke that one'
    : 'it can be revoked when that issuer was deleted'
  throw badRequest(`${refusal}; the given certificate is another one with serial ${withColons(serial)}: ${advice}`)
}
