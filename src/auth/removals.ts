import { unlessUnavailable } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { TokenRow } from './token.ts'

/** How long rows gather: those that are removed at the same time share a transaction. */
const gatherMilliseconds = 100
const mostAtOnce = 64
/** Rows beyond these are left to the expiry job. */
const mostWaiting = 1024

/**
 * Rows of revoked tokens that no worker accepts any more, and which have neither children nor leases: they are removed
 * soon after their revocation was answered. The expiry job removes those that are lost with the process.
 */
export class Removals {
  readonly #remove: (row: TokenRow) => Promise<void>
  readonly #log: Logger
  /** Ids of the rows that are still there. */
  readonly #left = new Set<string>()
  #gathered: TokenRow[] = []
  #timer: NodeJS.Timeout | undefined
  #removing = Promise.resolve()

  constructor(remove: (row: TokenRow) => Promise<void>, log: Logger) {
    this.#remove = remove
    this.#log = log
  }

  add(row: TokenRow): void {
    if (this.#left.has(row.id) || this.#left.size >= mostWaiting) return
    this.#left.add(row.id)
    this.#gathered.push(row)
    if (this.#gathered.length >= mostAtOnce) void this.done()
    else this.#timer ??= setTimeout(() => void this.done(), gatherMilliseconds).unref()
  }

  /** Whether this token's row waits for its removal. */
  has(id: string): boolean {
    return this.#left.has(id)
  }

  /** Resolves when those that wait have been removed, or left to the expiry job. Never rejects. */
  done(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const rows = this.#gathered
    this.#gathered = []
    if (rows.length > 0) this.#removing = this.#removing.then(() => this.#together(rows))
    return this.#removing
  }

  async #together(rows: readonly TokenRow[]): Promise<void> {
    await Promise.all(rows.map((row) => this.#one(row)))
  }

  async #one(row: TokenRow): Promise<void> {
    try {
      await this.#remove(row).catch(unlessUnavailable)
    } catch (error) {
      this.#log.error({ err: error }, 'the row of a revoked token could not be removed')
    }
    this.#left.delete(row.id)
  }
}
