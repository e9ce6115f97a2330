import type { Clock } from '../../clock.ts'
import type { Engine, Job } from '../../engine.ts'
import { unavailable } from '../../errors.ts'
import type { Mount } from '../../route.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { column, defineTable } from '../../store/table.ts'
import { mountsTable } from './mount.ts'

/** The mount's uuid is the standard column. */
export const looseMountsTable = defineTable(
  'loose_mounts',
  {
    path: column.text(),
    type: column.text(),
    /** making: what an engine keeps for every mount may be there, its row is not yet; gone: its row is no more. */
    state: column.text(),
    since: column.integer(),
  },
  { sealed: true },
)

/** Longer than any request takes: after it no old request still writes below the mount. */
const restMilliseconds = 600_000
const mountsAtOnce = 100

/**
 * Mounts below which there may be rows though they stand in no list: those that are being made, and those that are removed.
 * A crash in the middle of either leaves such rows, and so may a request that had begun before; a job removes them.
 */
export class LooseMounts {
  readonly job: Job = {
    name: 'sweep mounts',
    everySeconds: 300,
    run: (signal, fence) => this.sweep(signal, (tx) => tx.fence(this.job.name, fence)),
  }
  readonly #options: { database: Database; clock: Clock; engines: ReadonlyMap<string, Engine> }

  constructor(options: { database: Database; clock: Clock; engines: ReadonlyMap<string, Engine> }) {
    this.#options = options
  }

  /** Before anything is written below a new mount. */
  async begin(mount: Mount): Promise<void> {
    await this.#options.database.transaction((tx) => this.#insert(tx, mount, 'making'))
  }

  /**
   * The mount's own row is written by the same transaction.
   * @throws ApiError 503 when the sweep has already abandoned the mount
   */
  async settle(tx: Transaction, { uuid: mount }: Mount): Promise<void> {
    const rows = this.#options.database.table(looseMountsTable)
    const row = await rows.find(tx, { mount })
    if (row?.state !== 'making') throw unavailable('the mount took too long to be made')
    await rows.remove(tx, row)
  }

  /** The mount's own row is removed by the same transaction. */
  loosen(tx: Transaction, mount: Mount): Promise<void> {
    return this.#insert(tx, mount, 'gone')
  }

  /** Removes what lies below mounts that have been loose for long. @param guard called in each transaction, to check the job's fence */
  async sweep(signal: AbortSignal, guard: (tx: Transaction) => Promise<void>): Promise<void> {
    const { database, clock, engines } = this.#options
    const rows = database.table(looseMountsTable)
    for (const { id, since } of await database.read((q) => rows.list(q, {}, { by: 'id', limit: mountsAtOnce }))) {
      if (signal.aborted) return
      if (since > clock.wall() - restMilliseconds) continue
      const gone = await this.#abandon(id, guard)
      if (gone === undefined) continue
      await engines.get(gone.type)?.onUnmount?.(gone)
      await database.transaction(async (tx) => {
        await guard(tx)
        await rows.discard(tx, { id })
      })
    }
  }

  /** The mount, which can no longer be completed; undefined when it exists after all, because an old row was put back. */
  #abandon(id: string, guard: (tx: Transaction) => Promise<void>): Promise<Mount | undefined> {
    const { database } = this.#options
    const rows = database.table(looseMountsTable)
    return database.transaction(async (tx) => {
      await guard(tx)
      const row = await rows.get(tx, id)
      if (row === undefined) return undefined
      if (await database.table(mountsTable).get(tx, row.mount)) {
        await rows.remove(tx, row)
        return undefined
      }
      await rows.update(tx, row, { state: 'gone' })
      return { uuid: row.mount, path: row.path, type: row.type, config: {} }
    })
  }

  async #insert(tx: Transaction, { uuid: mount, path, type }: Mount, state: string): Promise<void> {
    const { database, clock } = this.#options
    await database.table(looseMountsTable).insert(tx, { mount, path, type, state, since: clock.wall() })
  }
}
