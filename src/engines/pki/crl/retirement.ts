import { nextTurn } from '../../../after.ts'
import type { Clock } from '../../../clock.ts'
import type { Job } from '../../../job.ts'
import type { Database } from '../../../store/database.ts'
import { pages } from '../../../store/pages.ts'
import { atMost, column, defineTable } from '../../../store/table.ts'
import type { Manifests } from './manifests.ts'
import { crlsTable, fingerprintsTable, segmentsTable } from './tables.ts'

/** The age of a segment, unverified. */
const agesTable = defineTable('pki_segments', { id: column.text(), createdAt: column.integer() }, { sealed: false })

const job = 'retire segments of revocation lists'
const everySeconds = 600
const pageSize = 500

interface RetirementOptions {
  readonly database: Database
  readonly clock: Clock
  readonly manifests: Manifests
}

/** Removes segments that neither manifests nor lists name, once no reader is left. */
export class Retirement {
  readonly job: Job = { name: job, everySeconds, run: (signal, fence) => this.#run(signal, fence) }
  readonly #database: Database
  readonly #clock: Clock
  readonly #manifests: Manifests
  /** When each segment was first found unnamed, by the monotonic clock. */
  #unnamed: ReadonlyMap<string, number> = new Map()

  constructor({ database, clock, manifests }: RetirementOptions) {
    this.#database = database
    this.#clock = clock
    this.#manifests = manifests
  }

  /** Readers of an old list, and builds from old segments, have until the next run. */
  async #run(signal: AbortSignal, fence: bigint): Promise<void> {
    const now = this.#clock.monotonic()
    const aged = await this.#aged()
    // After the ages: segments are named before they are old enough to be found, so that a new one never counts as
    // unnamed.
    for (const id of await this.#named()) aged.delete(id)
    const unnamed = new Map([...aged].map((id) => [id, this.#unnamed.get(id) ?? now]))
    const gone = [...unnamed].filter(([, since]) => now - since >= (everySeconds * 1000) / 2).map(([id]) => id)
    for (let at = 0; at < gone.length && !signal.aborted; at += pageSize) {
      const ids = gone.slice(at, at + pageSize)
      await this.#database.transaction(async (tx) => {
        await tx.fence(job, fence)
        await this.#database.table(segmentsTable).removeAll(tx, ids)
        await this.#database.table(fingerprintsTable).removeAll(tx, ids)
      })
      for (const id of ids) unnamed.delete(id)
    }
    this.#unnamed = unnamed
  }

  async #aged(): Promise<Set<string>> {
    const ids = new Set<string>()
    const where = { createdAt: atMost(this.#clock.wall() - everySeconds * 1000) }
    const page = { by: ['createdAt', 'id'], limit: pageSize, index: 'by_age' } as const
    for await (const rows of pages(this.#database, this.#database.unverified(agesTable), where, page)) {
      for (const { id } of rows) ids.add(id)
      await nextTurn()
    }
    return ids
  }

  async #named(): Promise<Set<string>> {
    const ids = new Set<string>()
    for (const { sites } of await this.#database.snapshot((q) => this.#manifests.all(q))) {
      for (const { segments } of Object.values(sites)) for (const { id } of segments) ids.add(id)
    }
    const page = { by: 'id', limit: pageSize } as const
    for await (const rows of pages(this.#database, this.#database.table(crlsTable), {}, page)) {
      for (const { parts } of rows) for (const { segment } of parts) ids.add(segment)
    }
    return ids
  }
}
