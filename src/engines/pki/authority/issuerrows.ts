import { createHash } from 'node:crypto'
import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import type { Database } from '../../../store/database.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Changes } from '../../../store/table.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { keyFingerprintOf } from '../../../x509/publickey.ts'
import { mostIssuers } from './authorities.ts'
import type { Authority, Issuer } from './authority.ts'
import { checkName } from './names.ts'
import { type IssuerRow, type IssuerUsage, issuersTable, issuerUsages, type KeyRow } from './tables.ts'

/** A CA certificate that is about to become an issuer. */
export interface NewIssuer {
  readonly certificate: Certificate
  /** '' for one without a name. */
  readonly name: string
  readonly revocationSignatureAlgorithm: string
  /** When its certificate was revoked; absent if it was not. */
  readonly revokedAt?: number | undefined
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** The rows of an authority's issuers, written in transactions that change it. */
export class IssuerRows {
  readonly #database: Database
  readonly #clock: Clock

  constructor({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
    this.#database = database
    this.#clock = clock
  }

  /** The issuer as the authority has it already: one certificate is one row. */
  find(before: Authority, { der }: Certificate): Issuer | undefined {
    return before.issuerWith(sha256(der))
  }

  /**
   * @param keyWith finds a key by its fingerprint, including new ones: the issuer is linked to its own key
   * @throws ApiError 400 for an invalid or taken name, or too many issuers
   */
  insert(
    tx: Transaction,
    before: Authority,
    issuer: NewIssuer,
    keyWith: (fingerprint: Buffer) => KeyRow | undefined,
  ): Promise<IssuerRow> {
    const { certificate, name, revocationSignatureAlgorithm, revokedAt = null } = issuer
    if (name !== '') checkName('issuer', name, before.issuerNamed(name) !== undefined)
    if (before.issuers.size >= mostIssuers) throw badRequest(`a mount has at most ${mostIssuers} issuers`)
    const now = this.#clock.wall()
    return this.#database.table(issuersTable).insert(tx, {
      mount: before.settings.mount,
      name: name === '' ? null : name,
      keyId: keyWith(keyFingerprintOf(certificate.spki))?.id ?? '',
      certificate: certificate.der,
      fingerprint: sha256(certificate.der),
      leafNotAfterBehavior: 'err',
      revocationSignatureAlgorithm,
      usages: usagesOfNew(certificate, revokedAt),
      revokedAt,
      changedAt: now,
      createdAt: now,
    })
  }

  /** @param row of the authority before the change */
  update(tx: Transaction, row: IssuerRow, changes: Changes<typeof issuersTable>): Promise<IssuerRow> {
    return this.#database.table(issuersTable).update(tx, row, { ...changes, changedAt: this.#clock.wall() })
  }

  /** @param row of the authority before the change */
  remove(tx: Transaction, row: IssuerRow): Promise<void> {
    return this.#database.table(issuersTable).remove(tx, row)
  }

  /** Gives a new key to the issuers that were there before it. */
  async link(tx: Transaction, before: Authority, key: KeyRow): Promise<void> {
    for (const { row } of before.keylessWith(key.fingerprint)) await this.update(tx, row, { keyId: key.id })
  }
}

/** A certificate without key usages may be used for anything (RFC 5280 section 4.2.1.3). */
export const signsLists = ({ keyUsage }: Certificate): boolean => keyUsage === undefined || keyUsage.includes('CRLSign')

/** Every use that its certificate allows, and after its revocation no issuing. */
export const usagesOfNew = (certificate: Certificate, revokedAt: number | null): readonly IssuerUsage[] =>
  issuerUsages.filter(
    (usage) =>
      (usage !== 'crl-signing' || signsLists(certificate)) && (usage !== 'issuing-certificates' || revokedAt === null),
  )
