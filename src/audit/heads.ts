import type { Clock } from '../clock.ts'
import type { Job } from '../job.ts'
import type { Database } from '../store/database.ts'
import { retentionJob } from '../store/retention.ts'
import type { SealedAccess } from '../store/sealed/access.ts'
import { column, defineTable, type Row } from '../store/table.ts'
import type { ChainHead, ChainNames } from './chain.ts'

/**
 * The end of each chain when it was last sealed. Kept after the device is disabled, for a configured time: the file may
 * be verified later.
 */
export const headsTable = defineTable(
  'audit_heads',
  {
    device: column.text(),
    incarnation: column.text(),
    node: column.text(),
    sequence: column.integer(),
    hash: column.text(),
    startedAt: column.integer(),
    updatedAt: column.integer(),
  },
  { sealed: true },
)

export type HeadRow = Row<typeof headsTable>

/**
 * Heads of living chains are sealed at least this often, even without new lines: a chain with an older head has ended.
 */
const renewMilliseconds = 24 * 3_600_000
const dayMilliseconds = 24 * 3_600_000

/** The job that removes the heads of chains that ended so many days ago. */
export const headRetention = (deps: { readonly database: Database; readonly clock: Clock }, days: number): Job =>
  retentionJob(deps, {
    name: 'forget ended audit chains',
    table: headsTable,
    rows: deps.database.table(headsTable),
    since: 'updatedAt',
    keptMilliseconds: days * dayMilliseconds + renewMilliseconds,
  })

/** A chain whose head is sealed periodically. */
export interface SealedChain {
  readonly names: ChainNames
  readonly head: ChainHead
}

/** Sealed heads of chains, which reveal a file whose end was cut off. */
export class ChainHeads {
  readonly #database: Database
  readonly #clock: Clock
  readonly #table: SealedAccess<typeof headsTable>
  readonly #sealed = new WeakMap<SealedChain, { readonly head: ChainHead; readonly at: number }>()

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    this.#table = database.table(headsTable)
  }

  /** Seals the head of a new chain, before its first line is written: a chain without a sealed head is forged. */
  register(chain: SealedChain): Promise<void> {
    return this.#write([chain])
  }

  /** Whether a chain has grown since its head was sealed, or that was long ago. */
  due(chain: SealedChain): boolean {
    const sealed = this.#sealed.get(chain)
    return sealed !== undefined && (sealed.head !== chain.head || this.#clock.wall() - sealed.at >= renewMilliseconds)
  }

  /** Seals the heads of the chains that are due. */
  async seal(chains: readonly SealedChain[]): Promise<void> {
    const due = chains.filter((chain) => this.due(chain))
    if (due.length > 0) await this.#write(due)
  }

  /** Every sealed head of a device. */
  async of(device: string): Promise<HeadRow[]> {
    const rows: HeadRow[] = []
    for (let after: string | undefined; ; after = rows.at(-1)?.incarnation) {
      const page = { by: 'incarnation', limit: pageSize, ...(after === undefined ? {} : { after }) } as const
      const found = await this.#database.read((q) => this.#table.list(q, { device }, page))
      rows.push(...found)
      if (found.length < pageSize) return rows
    }
  }

  async #write(chains: readonly SealedChain[]): Promise<void> {
    const due = chains.map((chain) => ({ chain, head: chain.head }))
    const updatedAt = this.#clock.wall()
    await this.#database.transaction(async (tx) => {
      for (const { chain, head } of due) {
        const { device, incarnation, node } = chain.names
        const row = await this.#table.find(tx, { device, incarnation })
        if (row) await this.#table.update(tx, row, { ...head, updatedAt })
        else await this.#table.insert(tx, { device, incarnation, node, ...head, startedAt: updatedAt, updatedAt })
      }
    })
    for (const { chain, head } of due) this.#sealed.set(chain, { head, at: updatedAt })
  }
}

const pageSize = 500
