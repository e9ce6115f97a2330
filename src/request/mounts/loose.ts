import { paced } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import type { Claim, Engine, Job } from '../../engine.ts'
import { unavailable } from '../../errors.ts'
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
     * making: an engine's rows for the mount may exist, but not yet its own row; gone: its row was removed; emptied:
     * the rows below it too, except those that an older request may still add.
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
 * Mounts that are not in the set but may have rows below them: those being made, and those removed. A job removes the
 * rows in bounded portions, continuing where an earlier run was interrupted.
 */
export class LooseMounts {
  readonly job: Job = { name: 'sweep mounts', everySeconds: 5, run: (signal, fence) => this.sweep(signal, fence) }
  readonly #options: LooseMountsOptions

  constructor(options: LooseMountsOptions) {
    this.#options = options
  }

  /** Called before anything is written below a new mount. */
  async begin(mount: Mount): Promise<void> {
    await this.#options.database.transaction((tx) => this.#insert(tx, mount, 'making'))
  }

  /**
   * Called at the start of the transaction that writes the mount's own row, together with the reads for it.
   * @throws ApiError 503 when the sweep has already abandoned the mount
   */
  async settle(tx: Transaction, { uuid: mount }: Mount): Promise<void> {
    const rows = this.#options.database.table(looseMountsTable)
    const row = await rows.lock(tx, { mount })
    if (row?.state !== 'making') throw unavailable('the mount took too long to be made')
    await rows.remove(tx, row)
  }

  /** Whether a mount is loose. */
  holds(mount: string): Promise<boolean> {
    const rows = this.#options.database.table(looseMountsTable)
    return this.#options.database.read((q) => rows.exists(q, { mount }))
  }

  /** The mount will not be made after all. */
  async giveUp({ uuid: mount }: Mount): Promise<void> {
    const rows = this.#options.database.table(looseMountsTable)
    await this.#options.database.transaction(async (tx) => {
      const row = await rows.find(tx, { mount })
      if (row?.state === 'making') await rows.update(tx, row, { state: 'gone' })
    })
  }

  /** Called in the transaction that removes the mount's own row. */
  loosen(tx: Transaction, mount: Mount): Promise<void> {
    return this.#insert(tx, mount, 'gone')
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
   * The mount, which can no longer be completed; undefined while it is being made, and when it exists after all because
   * an old row was put back.
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

  async #insert(tx: Transaction, { uuid: mount, path, type }: Mount, state: string): Promise<void> {
    const { database, clock } = this.#options
    await database.table(looseMountsTable).insert(tx, { mount, path, type, state, since: clock.wall() })
  }
}
