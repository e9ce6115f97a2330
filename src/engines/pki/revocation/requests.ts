import type { Clock } from '../../../clock.ts'
import type { Claim } from '../../../engine.ts'
import type { Database } from '../../../store/database.ts'
import { DuplicateRow } from '../../../store/faults.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import { column, defineTable } from '../../../store/table.ts'
import type { CertificateName } from '../certificates/tables.ts'
import { type QueueRow, queueTable } from './tables.ts'

/** The columns by which a job goes through the queue, unverified: an edited row hides no other. */
export const queueTraces = defineTable(queueTable.name, { id: column.text() }, { sealed: false })

interface RequestsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly site: string
}

/** What a site asks others to revoke: serial numbers that it does not know itself. */
export class RevocationRequests {
  readonly #options: RequestsOptions
  readonly #table: SealedAccess<typeof queueTable>

  constructor(options: RequestsOptions) {
    this.#options = options
    this.#table = options.database.table(queueTable)
  }

  /** Asks the other sites to revoke a certificate; once is enough. */
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

  /** Those of these that this site may answer: open, and of another site. */
  async open(ids: readonly string[]): Promise<readonly QueueRow[]> {
    const { database, site } = this.#options
    const rows = await database.read((q) => this.#table.sound(q, ids))
    return rows.filter((row) => row.site !== site && row.confirmedAt === null)
  }

  /** Says that this site has revoked what was asked for. */
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

  /** Removes those of these that are confirmed. */
  removeConfirmed(ids: readonly string[], { job, fence }: Claim): Promise<void> {
    return this.#options.database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const rows = await this.#table.sound(tx, ids)
      for (const row of rows) if (row.confirmedAt !== null) await this.#table.remove(tx, row)
    })
  }
}
