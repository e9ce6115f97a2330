import type { Clock } from '../../../clock.ts'
import type { Claim } from '../../../job.ts'
import type { Database } from '../../../store/database.ts'
import { DuplicateRow } from '../../../store/faults.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { CertificateName } from '../certificates/tables.ts'
import { type QueueRow, queueTable } from './tables.ts'

/** The columns for a job's walk through the queue, unverified: an edited row hides no other. */
export const queueTraces = defineTable(queueTable.name, { id: column.text() }, { sealed: false })

interface RequestsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly site: string
}

/** Requests of a site to others, to revoke serial numbers that it does not know itself. */
export class RevocationRequests {
  readonly #options: RequestsOptions
  readonly #table: SealedAccess<typeof queueTable>

  constructor(options: RequestsOptions) {
    this.#options = options
    this.#table = options.database.table(queueTable)
  }

  /** Asks the other sites to revoke a certificate; repeating it has no effect. */
  async ask({ mount, serial }: CertificateName): Promise<void> {
    const { database, clock, site } = this.#options
    const request = { mount, serial, site }
    try {
      await database.transaction(async (tx) => {
        if (await this.#table.exists(tx, request)) return
        await this.#table.insert(tx, { ...request, requestedAt: clock.wall() })
      })
    } catch (error) {
      if (!(error instanceof DuplicateRow)) throw error
    }
  }

  /** The requests that this site may answer: open ones of other sites. */
  async open(ids: readonly string[]): Promise<readonly QueueRow[]> {
    const { database, site } = this.#options
    const rows = await database.read((q) => this.#table.sound(q, ids))
    return rows.filter((row) => row.site !== site && row.confirmedAt === null)
  }

  /** Records that this site has carried out these requests. */
  confirm(ids: readonly string[], { job, fence }: Claim): Promise<void> {
    const { database, clock, site } = this.#options
    return database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const changes = { confirmedBy: site, confirmedAt: clock.wall() }
      for (const row of await this.#table.sound(tx, ids)) {
        if (row.confirmedAt === null) await this.#table.update(tx, row, changes)
      }
    })
  }

  /** Removes the confirmed requests among these. */
  removeConfirmed(ids: readonly string[], { job, fence }: Claim): Promise<void> {
    return this.#options.database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const rows = await this.#table.sound(tx, ids)
      for (const row of rows) if (row.confirmedAt !== null) await this.#table.remove(tx, row)
    })
  }
}
