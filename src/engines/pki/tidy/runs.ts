import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../clock.ts'
import type { Claim } from '../../../job.ts'
import type { Database } from '../../../store/database.ts'
import { LeaseLost } from '../../../store/faults.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { PlainAccess } from '../../../store/sealed/access.ts'
import { authoritiesTable } from '../authority/tables.ts'
import type { TidyOrder } from './settings.ts'
import { isActive, noCounts, type TidyCounts, type TidyRun, tidiesTable } from './tables.ts'

/** The progress of one portion of a run. Counts are added to those of the run. */
export type Progress = Partial<Pick<TidyRun, 'step' | 'cursor' | 'checked' | 'total' | 'carried' | 'message'>> & {
  readonly counts?: Partial<TidyCounts>
}

/** The runs of one site, as all its workers see them. */
export class TidyRuns {
  readonly #database: Database
  readonly #clock: Clock
  readonly #site: string
  readonly #table: PlainAccess<typeof tidiesTable>

  constructor({ database, clock, site }: { database: Database; clock: Clock; site: string }) {
    this.#database = database
    this.#clock = clock
    this.#site = site
    this.#table = database.table(tidiesTable)
  }

  /** The current run of a mount, or its last one. @param mount uuid */
  async find(mount: string): Promise<TidyRun | undefined> {
    const row = await this.#database.read((q) => this.#table.find(q, { mount, site: this.#site }))
    return row?.status
  }

  /** Mounts whose runs have begun and not ended. */
  async active(): Promise<string[]> {
    const found: string[] = []
    for (let after = ''; ; ) {
      const page = { by: 'mount', after, limit: 200 } as const
      const rows = await this.#database.read((q) => this.#table.list(q, { site: this.#site }, page))
      const last = rows.at(-1)
      if (last === undefined) return found
      found.push(...rows.filter(({ status }) => isActive(status)).map(({ mount }) => mount))
      after = last.mount
    }
  }

  /** Begins a run. @returns undefined while another one is under way, or if the mount was removed */
  begin(mount: string, order: TidyOrder, automatic: boolean): Promise<TidyRun | undefined> {
    return this.#database.transaction(async (tx) => {
      const row = await this.#table.lock(tx, { mount, site: this.#site })
      if (row !== undefined && isActive(row.status)) return undefined
      if (!(await this.#database.table(authoritiesTable).exists(tx, { mount }))) return undefined
      const now = this.#clock.wall()
      const status: TidyRun = {
        ...{ id: randomUUID(), order, automatic, state: 'Running', step: 'certStore', cursor: null, checked: 0 },
        ...{ total: 0, carried: false, message: null, error: null, counts: noCounts, startedAt: now, finishedAt: null },
        lastAutomaticAt: row?.status.lastAutomaticAt ?? null,
      }
      if (row === undefined) await this.#table.insert(tx, { mount, site: this.#site, status, updatedAt: now })
      else await this.#write(tx, mount, status)
      return status
    })
  }

  /** Asks the run to stop at its next portion. @returns undefined if no run is under way */
  cancel(mount: string): Promise<TidyRun | undefined> {
    return this.#database.transaction(async (tx) => {
      const row = await this.#table.lock(tx, { mount, site: this.#site })
      if (row === undefined || !isActive(row.status)) return undefined
      return this.#write(tx, mount, { ...row.status, state: 'Cancelling' })
    })
  }

  /**
   * Does a portion of a run's work and stores the place it has reached, in one transaction; a cancelled run ends
   * instead.
   * @throws LeaseLost when another worker has the run
   */
  advance(
    mount: string,
    { id }: TidyRun,
    { job, fence }: Claim,
    work: (tx: Transaction) => Promise<Progress>,
  ): Promise<TidyRun> {
    return this.#database.transaction(async (tx) => {
      const row = await this.#table.lock(tx, { mount, site: this.#site })
      await tx.fence(job, fence)
      if (row?.status.id !== id || !isActive(row.status)) throw new LeaseLost(job)
      const { status } = row
      if (status.state === 'Cancelling') return this.#write(tx, mount, this.#ended(status, 'Cancelled'))
      const { counts = {}, ...progress } = await work(tx)
      return this.#write(tx, mount, { ...status, ...progress, counts: sum(status.counts, counts) })
    })
  }

  /** Ends a run. @param error the reason if it failed @throws LeaseLost */
  finish(mount: string, { id }: TidyRun, { job, fence }: Claim, error: string | null = null): Promise<TidyRun> {
    return this.#database.transaction(async (tx) => {
      const row = await this.#table.lock(tx, { mount, site: this.#site })
      await tx.fence(job, fence)
      if (row?.status.id !== id || !isActive(row.status)) throw new LeaseLost(job)
      const ended = this.#ended(row.status, error === null ? 'Finished' : 'Error')
      return this.#write(tx, mount, { ...ended, error })
    })
  }

  #ended(run: TidyRun, state: 'Finished' | 'Error' | 'Cancelled'): TidyRun {
    const finishedAt = this.#clock.wall()
    // Of the messages only the one about the legacy bundle is kept after the end.
    const message = state === 'Finished' ? run.message : null
    return { ...run, state, message, finishedAt, lastAutomaticAt: run.automatic ? finishedAt : run.lastAutomaticAt }
  }

  async #write(tx: Transaction, mount: string, status: TidyRun): Promise<TidyRun> {
    await this.#table.change(tx, { mount, site: this.#site }, { status, updatedAt: this.#clock.wall() })
    return status
  }
}

/** @param stored from a run that an older version may have begun: newer counts are missing */
function sum(stored: Partial<TidyCounts>, more: Partial<TidyCounts>): TidyCounts {
  const counts = { ...noCounts, ...stored }
  const added = Object.entries(more).map(([name, n]) => [name, counts[name as keyof TidyCounts] + n])
  return { ...counts, ...Object.fromEntries(added) }
}
