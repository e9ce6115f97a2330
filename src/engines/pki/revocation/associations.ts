import { paced } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { Claim, Job } from '../../../job.ts'
import type { Logger } from '../../../log.ts'
import type { Database } from '../../../store/database.ts'
import type { Reading } from '../../../store/sealed/access.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { Authorities } from '../authority/authorities.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'
import { type CertificateRow, certificateTable, type RevocationRow, revocationTable } from '../certificates/tables.ts'
import { hasKey } from '../publication/groups.ts'
import { jobOfSite } from '../site.ts'
import type { Publication } from './publication.ts'
import { verifyStored } from './revocable.ts'
import type { Revocations } from './revocations.ts'

interface AssociationsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly site: string
  readonly authorities: Authorities
  readonly revocations: Revocations
  readonly publication: Publication
}

/** The columns that find revocations without a CRL issuer, unverified: the first ones of the index, then the id. */
const traces = defineTable(
  revocationTable.name,
  {
    id: column.text(),
    mount: column.text(),
    site: column.text(),
    crlIssuer: column.hex().nullable(),
  },
  { sealed: false },
)

const portionSize = 1000
const atOnce = 64
const portionsAtOnce = 10
const everySeconds = 60

/** The result for a portion of revocations. */
export interface Associated {
  /** The id to continue after; undefined when there are no more. */
  readonly last: string | undefined
  /** Revocations that now have a CRL issuer. */
  readonly associated: readonly RevocationRow[]
  /** The number still without one: no issuer of their mount is known to have signed their certificates. */
  readonly missing: number
}

/**
 * Adds the CRL issuer to revocations that were recorded without one, when an issuer of the mount turns out to have
 * signed the certificates.
 */
export class Associations {
  readonly #options: AssociationsOptions
  readonly #traces: Reading<typeof traces>

  constructor(options: AssociationsOptions) {
    this.#options = options
    this.#traces = options.database.unverified(traces)
  }

  /**
   * The job of this site, over all mounts. It continues while it finds issuers, and starts where the previous run
   * ended.
   */
  get job(): Job {
    const name = jobOfSite('associate revocations with issuers', this.#options.site)
    return { name, everySeconds, run: (signal, fence) => this.#run(signal, { job: name, fence }) }
  }

  async #run(signal: AbortSignal, { job, fence }: Claim): Promise<void> {
    const { database } = this.#options
    let place = await database.jobPlace(job)
    for (let found = true; found && !signal.aborted; ) {
      const { last = '', associated } = await this.some(place)
      await database.transaction((tx) => tx.fence(job, fence, last))
      found = last !== '' && associated.length > 0
      place = last
    }
  }

  /**
   * A portion of the revocations of this site without a CRL issuer, in the order of their ids. If the mount has
   * revocations wait for lists, the changed lists are published when it resolves.
   * @param after an id; '' for the beginning
   * @param mount uuid; only revocations of this mount
   */
  async some(after: string, mount?: string): Promise<Associated> {
    const { database, site, clock, publication } = this.#options
    const page = { by: 'id', index: 'by_issuer', limit: portionSize, ...(after === '' ? {} : { after }) } as const
    const where = { crlIssuer: null, site }
    const found = await database.read((q) => this.#traces.list(q, where, page))
    const ids = found.filter((row) => mount === undefined || row.mount === mount).map(({ id }) => id)
    const associated: RevocationRow[] = []
    for (let start = 0; start < ids.length; start += atOnce) {
      const some = ids.slice(start, start + atOnce)
      associated.push(...(await paced(clock, () => this.#associateAll(some))))
    }
    const lists = new Map(associated.map((row) => [`${row.mount} ${row.crlIssuer}`, row]))
    for (const row of lists.values()) await publication.revoked({ uuid: row.mount }, row)
    const last = found.length < portionSize ? undefined : found.at(-1)?.id
    return { last, associated, missing: ids.length - associated.length }
  }

  /**
   * The first revocations of a mount without a CRL issuer, for requests that bring an issuer or want the lists: the job
   * does the others. Never rejects.
   */
  async soon(mount: string): Promise<void> {
    try {
      let after: string | undefined = ''
      for (let portion = 0; portion < portionsAtOnce && after !== undefined; portion++) {
        after = (await this.some(after, mount)).last
      }
    } catch (error) {
      this.#options.log.warn({ err: error, mount }, 'revocations could not be associated with issuers now')
    }
  }

  /** Associates them; returns those that now have a CRL issuer. */
  async #associateAll(ids: readonly string[]): Promise<readonly RevocationRow[]> {
    const { database } = this.#options
    const certificates = database.table(certificateTable)
    const rows = await database.read((q) => database.table(revocationTable).sound(q, ids))
    const stored = await database.read((q) =>
      Promise.all(rows.map(({ mount, serial }) => certificates.find(q, { mount, serial }))),
    )
    const looked = await Promise.all(rows.map((row, index) => this.#associate(row, stored[index])))
    return looked.filter(({ crlIssuer }) => crlIssuer !== null)
  }

  async #associate(row: RevocationRow, stored: CertificateRow | undefined): Promise<RevocationRow> {
    const { log, revocations } = this.#options
    try {
      const signer = await this.#signerOf(row, stored)
      return signer === undefined ? row : await revocations.record({ ...row, ...signer })
    } catch (error) {
      log.warn({ err: error, revocation: row.id }, 'a revocation could not be associated with an issuer')
      return row
    }
  }

  /** Found by the revocation's own row, which is sealed, or else by the signature of the certificate. */
  async #signerOf(
    row: RevocationRow,
    stored: CertificateRow | undefined,
  ): Promise<{ issuer: string; crlIssuer: string } | undefined> {
    const { authorities, log } = this.#options
    const authority = await authorities.of({ uuid: row.mount })
    const known = authority.issuers.get(row.issuer)
    if (known !== undefined) {
      return hasKey(authority, known) ? { issuer: row.issuer, crlIssuer: crlIssuerOf(known.certificate) } : undefined
    }
    if (stored === undefined) return undefined
    const { issuer, crlIssuer } = await verifyStored(authority, stored, log)
    return crlIssuer === null ? undefined : { issuer, crlIssuer }
  }
}
