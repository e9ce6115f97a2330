import { paced } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import type { Claim, Job } from '../../job.ts'
import type { Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import { LeaseLost } from '../../store/faults.ts'
import { pages } from '../../store/pages.ts'
import type { Transaction } from '../../store/reader.ts'
import { column, defineTable } from '../../store/table.ts'
import { mountsTable } from './mount.ts'

/** The mount's uuid is the standard column. */
export const looseMountsTable = defineTable(
  'loose_mounts',
  {
    path: column.text(),
    type: column.text(),
    /**
     * gone: the mount's own row was removed; emptied: the rows below it too, except those that an older request may
     * still add; making (by an earlier release): an engine's rows for the mount may exist, but not yet its own row.
     */
    state: column.text(),
    since: column.integer(),
  },
  { sealed: true },
)

/**
 * Finds the rows to work on, unverified; all text, so that an edited value cannot fail to parse and hide the others.
 */
const looseTraces = defineTable(
  'loose_mounts',
  { id: column.text(), state: column.text(), since: column.text() },
  { sealed: false },
)

/** Longer than any request takes: after it no old request can write below the mount. */
const restMilliseconds = 600_000
const mountsAtOnce = 100

interface LooseMountsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly engines: ReadonlyMap<string, Engine>
}

/**
 * Removed mounts, which may still have rows below them. A job removes those in bounded portions, continuing where an
 * earlier run was interrupted.
 */
export class LooseMounts {
  readonly job: Job = { name: 'sweep mounts', everySeconds: 5, run: (signal, fence) => this.sweep(signal, fence) }
  readonly #options: LooseMountsOptions

  constructor(options: LooseMountsOptions) {
    this.#options = options
  }

  /** Whether a mount is loose. */
  holds(mount: string): Promise<boolean> {
    const rows = this.#options.database.table(looseMountsTable)
    return this.#options.database.read((q) => rows.exists(q, { mount }))
  }

  /** Called in the transaction that removes the mount's own row. */
  async loosen(tx: Transaction, { uuid: mount, path, type }: Mount): Promise<void> {
    const { database, clock } = this.#options
    await database.table(looseMountsTable).insert(tx, { mount, path, type, state: 'gone', since: clock.wall() })
  }

  /**
   * Removes the rows below mounts that are gone, and once more when such a mount has been loose for long. A failing
   * mount does not hold up the others.
   */
  async sweep(signal: AbortSignal, fence: bigint): Promise<void> {
    const { database } = this.#options
    const claim = { job: this.job.name, fence }
    const faults: unknown[] = []
    for await (const page of pages(database, database.unverified(looseTraces), {}, { by: 'id', limit: mountsAtOnce })) {
      for (const { id, state, since } of page) {
        if (signal.aborted) return
        if (state !== 'gone' && !this.#rested(Number(since))) continue
        await this.#clear(id, claim, signal).catch((error: unknown) => {
          if (error instanceof LeaseLost) throw error
          faults.push(error)
        })
      }
    }
    if (faults.length > 0) throw new AggregateError(faults, `${faults.length} mounts were not cleared`)
  }

  async #clear(id: string, claim: Claim, signal: AbortSignal): Promise<void> {
    const { clock, engines } = this.#options
    const mount = await this.#abandon(id, claim)
    if (mount === undefined) return
    const engine = engines.get(mount.type)
    const removeSome = async () => (await engine?.removeSome?.(mount, claim)) ?? false
    // A rested mount gets no more rows: this removal is the last.
    const rested = this.#rested(mount.since)
    while (await paced(clock, removeSome)) if (signal.aborted) return
    await this.#finish(id, claim, rested)
  }

  /**
   * The mount, which can no longer be completed; undefined while an earlier release makes it, and when it exists after
   * all because an old row was put back.
   */
  #abandon(id: string, { job, fence }: Claim): Promise<(Mount & { readonly since: number }) | undefined> {
    const { database } = this.#options
    const rows = database.table(looseMountsTable)
    return database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const row = await rows.get(tx, id)
      if (row === undefined) return undefined
      if (await database.table(mountsTable).get(tx, row.mount)) {
        await rows.remove(tx, row)
        return undefined
      }
      if (row.state === 'making' && !this.#rested(row.since)) return undefined
      if (row.state === 'making') await rows.update(tx, row, { state: 'gone' })
      return { uuid: row.mount, path: row.path, type: row.type, config: {}, since: row.since }
    })
  }

  #finish(id: string, { job, fence }: Claim, rested: boolean): Promise<void> {
    const { database } = this.#options
    const rows = database.table(looseMountsTable)
    return database.transaction(async (tx) => {
      await tx.fence(job, fence)
      const row = await rows.get(tx, id)
      if (row === undefined) return
      if (rested) await rows.remove(tx, row)
      else await rows.update(tx, row, { state: 'emptied' })
    })
  }

  #rested(since: number): boolean {
    return since <= this.#options.clock.wall() - restMilliseconds
  }
}
