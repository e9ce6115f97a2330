import { randomUUIDv7 } from 'node:crypto'
import type { Clock } from '../../../clock.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import type { Claim } from '../../../job.ts'
import type { LeaseRequest, NewLease } from '../../../leases/lease.ts'
import type { Leases } from '../../../leases/leases.ts'
import type { Mount } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import { Batch } from '../../../store/group.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { PlainAccess, SealedAccess } from '../../../store/sealed/access.ts'
import { revocationTally } from '../revocation/tables.ts'
import { certificateLease } from './lease.ts'
import {
  type CertificateName,
  type CertificateRow,
  cacheKey,
  certificateTable,
  certificateTally,
  nameOfKey,
  type RevocationRow,
  revocationTable,
} from './tables.ts'

/** A certificate to store. `mount` is the mount's uuid, `issuer` the uuid of the issuer that signed it. */
export type NewCertificate = Omit<CertificateRow, 'id' | 'site' | 'createdAt'>

/** A certificate as cached: with its revocation, because a revocation changes it. */
export interface StoredCertificate {
  readonly certificate: CertificateRow
  readonly revocation: RevocationRow | undefined
}

export interface CertificatesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly leases: Pick<Leases, 'insert' | 'limits'>
  /** This node's. */
  readonly site: string
  /** The most certificates cached, over all mounts. */
  readonly cacheLimit?: number
}

interface Write {
  readonly certificate: CertificateRow
  readonly lease: NewLease | undefined
}

/**
 * Longest certificate. A group of 64 then fits into one packet of the database, so that a large certificate cannot fail
 * the small ones beside it.
 */
export const longestCertificate = 65_535

const cachedAtMost = 10_000
const removedAtOnce = 500

/** The certificates that this server has issued and stored, of every mount. A site sees only its own. */
export class Certificates {
  readonly #options: CertificatesOptions
  readonly #table: PlainAccess<typeof certificateTable>
  readonly #revocations: SealedAccess<typeof revocationTable>
  readonly #cache: CoherentCache<StoredCertificate>
  readonly #writes = new Batch<Write, CertificateRow | ApiError>((writes) => this.#commit(writes))

  constructor(options: CertificatesOptions) {
    const { database, cacheLimit = cachedAtMost } = options
    this.#options = options
    this.#table = database.table(certificateTable)
    this.#revocations = database.table(revocationTable)
    this.#cache = database.cache({
      table: certificateTable.name,
      limit: cacheLimit,
      lane: 'public',
      load: {
        joined: database.joined({
          tables: { certificate: certificateTable, revocation: revocationTable },
          key: nameOfKey,
          value: ({ certificate, revocation }) => certificate && { certificate, revocation },
        }),
      },
    })
  }

  /**
   * Stores a certificate, with its lease if it has one (`Leases.prepare`; `confirm` it afterwards), in one commit with
   * others stored at the same time. It is committed when this resolves.
   * @throws DuplicateRow of `pki_certificates` when the mount has a certificate with this serial: another serial will
   *   do
   * @throws ApiError 400 for a certificate above `longestCertificate`; 429 for a lease beyond its quota; 503, which
   *   includes UnknownOutcome
   */
  async store(certificate: NewCertificate, lease?: NewLease): Promise<CertificateRow> {
    if (certificate.der.length > longestCertificate) {
      throw badRequest(
        `the certificate would have ${certificate.der.length} bytes; at most ${longestCertificate} can be stored`,
      )
    }
    const { site, clock } = this.#options
    const row = { ...certificate, id: randomUUIDv7(), site, createdAt: clock.wall() }
    const stored = await this.#writes.add({ certificate: row, lease })
    if (stored instanceof ApiError) throw stored
    return stored
  }

  /** As store, in a transaction that stores other rows too. */
  async insert(tx: Transaction, certificate: NewCertificate): Promise<void> {
    const { site, clock } = this.#options
    await this.#table.insertMany(tx, [{ id: randomUUIDv7(), ...certificate, site, createdAt: clock.wall() }])
    tx.tally(certificateTally(certificate.mount, site), 1)
  }

  /** The lease of a certificate, as `Leases.prepare` takes it: it ends with the certificate. */
  leaseRequest(certificate: NewCertificate): LeaseRequest {
    const { site, clock } = this.#options
    return certificateLease({ ...certificate, site }, clock.wall())
  }

  /** No cache holds a serial that has no row yet, so nothing is touched. */
  async #commit(writes: readonly Write[]): Promise<(CertificateRow | ApiError)[]> {
    const { database, leases } = this.#options
    const wanted = writes.flatMap(({ lease }) => lease ?? [])
    const limits = wanted.length === 0 ? undefined : await leases.limits()
    return database.transaction(async (tx) => {
      const refusals = await leases.insert(tx, wanted, limits)
      const refusalOf = ({ lease }: Write) => lease && refusals.get(lease)
      const stored = writes.filter((write) => refusalOf(write) === undefined)
      const rows = await this.#table.insertMany(
        tx,
        stored.map(({ certificate }) => certificate),
      )
      for (const { mount, site } of rows) tx.tally(certificateTally(mount, site), 1)
      const byId = new Map(rows.map((row) => [row.id, row]))
      return writes.map((write) => refusalOf(write) ?? byId.get(write.certificate.id) ?? write.certificate)
    })
  }

  /**
   * A certificate of this site by its serial (`parseSerial`), from the cache, else read on the lane of public reads.
   * @throws ApiError 503 when that lane is full
   */
  async find(name: CertificateName): Promise<StoredCertificate | undefined> {
    const found = await this.#cache.get(cacheKey(name))
    return found?.certificate.site === this.#options.site ? found : undefined
  }

  /** A certificate of any site as a transaction sees it, for work that changes it. */
  async read(q: Reader, { mount, serial }: CertificateName): Promise<StoredCertificate | undefined> {
    const [certificate, revocation] = await Promise.all([
      this.#table.find(q, { mount, serial }),
      this.#revocations.find(q, { mount, serial }),
    ])
    return certificate && { certificate, revocation }
  }

  /** The number of stored certificates of this site in a mount, from a count kept with the rows. */
  count(mount: string): Promise<number> {
    return this.#options.database.tally(certificateTally(mount, this.#options.site))
  }

  /** The number of recorded revocations of this site in a mount, from a count kept with the rows. */
  countRevoked(mount: string): Promise<number> {
    return this.#options.database.tally(revocationTally(mount, this.#options.site))
  }

  /** Whether no site has stored a certificate in a mount. */
  empty(mount: string): Promise<boolean> {
    return this.#options.database.read(async (q) => !(await this.#table.exists(q, { mount })))
  }

  /**
   * Removes a portion of the certificates of a removed mount, and at the end its counts.
   * @returns whether there was anything to remove
   */
  removeSome({ uuid: mount }: Mount, { job, fence }: Claim): Promise<boolean> {
    return this.#options.database.transaction(async (tx: Transaction) => {
      await tx.fence(job, fence)
      if ((await this.#table.removeWhere(tx, { mount }, { limit: removedAtOnce })) > 0) return true
      await tx.discardTallies(certificateTally(mount, ''))
      await tx.discardTallies(revocationTally(mount, ''))
      return false
    })
  }
}
