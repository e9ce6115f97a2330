import type { Clock } from '../../../clock.ts'
import type { Mount } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { Batch } from '../../../store/group.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { revocationTally } from '../revocation/tables.ts'
import { leasedCertificate } from './lease.ts'
import { cacheKey, certificateTable, type RevocationRow, type RevokedCertificate, revocationTable } from './tables.ts'

/** A certificate that ends within this time is not revoked any more: its lease ends up to a second before it. */
const endingMilliseconds = 2000

/** The record of what is revoked, and since when. */
export class Revocations {
  readonly #database: Database
  readonly #clock: Clock
  readonly #table: SealedAccess<typeof revocationTable>
  readonly #writes = new Batch<RevokedCertificate, RevocationRow>((some) => this.#commit(some))

  constructor({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#table = database.table(revocationTable)
  }

  /**
   * Records a revocation, in one commit with what others revoke at the same time. When it resolves no cache holds the
   * certificate as valid.
   * @returns the record; of a certificate that was revoked before, the first one
   */
  record(certificate: RevokedCertificate): Promise<RevocationRow> {
    return this.#writes.add(certificate)
  }

  /**
   * Revokes a leased certificate, unless it ends by itself.
   * @param payload of the lease
   */
  async revokeLease({ uuid }: Mount, payload: Readonly<Record<string, unknown>>): Promise<void> {
    const certificate = leasedCertificate(uuid, payload)
    if (certificate.notAfter > this.#clock.wall() + endingMilliseconds) await this.record(certificate)
  }

  #commit(certificates: readonly RevokedCertificate[]): Promise<RevocationRow[]> {
    return this.#database.transaction(async (tx) => {
      const found = await Promise.all(certificates.map(({ mount, serial }) => this.#table.find(tx, { mount, serial })))
      // Recorded ones too: whoever recorded them may still be waiting for the caches.
      for (const one of certificates) tx.touch(certificateTable.name, cacheKey(one))
      const records = new Map<string, RevocationRow>()
      for (const row of found) if (row !== undefined) records.set(cacheKey(row), row)
      for (const row of await this.#insert(tx, certificates, records)) records.set(cacheKey(row), row)
      return certificates.map((one) => records.get(cacheKey(one)) as RevocationRow)
    })
  }

  /** Those that are not recorded yet, each once. */
  #insert(
    tx: Transaction,
    certificates: readonly RevokedCertificate[],
    recorded: ReadonlyMap<string, unknown>,
  ): Promise<RevocationRow[]> {
    const revokedAt = this.#clock.wall()
    const fresh = new Map(certificates.map((one) => [cacheKey(one), one]))
    for (const key of recorded.keys()) fresh.delete(key)
    for (const { mount, site } of fresh.values()) tx.tally(revocationTally(mount, site), 1)
    return this.#table.insertMany(
      tx,
      [...fresh.values()].map(({ mount, site, serial, issuer, notAfter }) => {
        return { mount, site, serial, issuer, notAfter, revokedAt }
      }),
    )
  }
}
