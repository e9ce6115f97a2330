import type { Database } from '../../store/database.ts'
import { DamagedRow } from '../../store/faults.ts'
import type { Reader, Transaction } from '../../store/reader.ts'
import type { Reading } from '../../store/sealed/access.ts'
import { type Head, headsTable } from '../../store/sealed/heads.ts'
import { type KekRow, keksTable } from '../tables.ts'

/** The name of the set of KEKs among the sealed heads; its name in the cache, too. */
export const kekSet = keksTable.name

const pageRows = 500

/** All KEKs at one moment. */
export interface KekReading {
  readonly rows: readonly KekRow[]
  /** The number of the set's last change; it only grows. */
  readonly change: number
}

/**
 * The set of KEKs under its sealed head. A row that was put back does not match the head, and a head that was put back
 * with all its rows is older than the newest that this process has seen or the token remembers.
 */
export class KekSet {
  readonly #database: Database
  readonly #head: Head
  readonly #remembered: () => Promise<number>
  #seen: number

  /**
   * @param seen the newest change that was known at the start
   * @param remembered the newest change that the token remembers: any worker may have anchored one that this one has
   * not read
   */
  constructor(database: Database, seen = 0, remembered = async () => 0) {
    this.#database = database
    this.#head = database.head(kekSet)
    this.#seen = seen
    this.#remembered = remembered
  }

  /** The newest change that this process knows of. */
  get seen(): number {
    return this.#seen
  }

  /** Asks the token for the set's latest change; before the database is read, which could otherwise look too old. */
  async learn(): Promise<void> {
    this.#seen = Math.max(this.#seen, await this.#remembered())
  }

  /** The set as a snapshot shows it, which may be older than another reader's view. @throws DamagedRow */
  async read(q: Reader): Promise<KekReading> {
    const rows = await this.#list(q)
    const change = await this.#head.sequence(q, rows)
    this.#seen = Math.max(this.#seen, change)
    return { rows, change }
  }

  /** The set, never older than any reading before. @throws DamagedRow when the database has gone back */
  async current(): Promise<KekReading> {
    await this.learn()
    const least = this.#seen
    const reading = await this.#database.snapshot((q) => this.read(q))
    requireNewer(reading.change, least)
    return reading
  }

  /** Changes the set; one change at a time. @param work may be repeated @throws DamagedRow as `current` */
  async change<T>(work: (tx: Transaction, rows: readonly KekRow[]) => Promise<T>): Promise<T> {
    await this.learn()
    const least = this.#seen
    return this.#database.transaction(async (tx) => {
      const [, rows] = await Promise.all([this.#head.lock(tx), this.#list(tx)])
      requireNewer(await this.#head.sequence(tx, rows), least)
      const result = await work(tx, rows)
      await this.#head.advance(tx, await this.#database.table(keksTable).revisions(tx))
      tx.touch(keksTable.name, kekSet)
      return result
    })
  }

  #list(q: Reader): Promise<KekRow[]> {
    return listKeks(this.#database.table(keksTable), q)
  }
}

/** Every KEK there is or was, in the order of ids. @param keks the table, verified or not */
export async function listKeks(keks: Reading<typeof keksTable>, q: Reader): Promise<KekRow[]> {
  const rows: KekRow[] = []
  for (let full = true; full; ) {
    const last = rows.at(-1)
    const after = last === undefined ? {} : { after: last.id }
    const page = await keks.list(q, {}, { by: 'id', limit: pageRows, ...after })
    rows.push(...page)
    full = page.length === pageRows
  }
  return rows
}

function requireNewer(change: number, least: number): void {
  if (change >= least) return
  throw new DamagedRow('heads', kekSet, `the KEKs are as of change ${change}, change ${least} was seen before`)
}

/**
 * Puts the existing KEKs under a head, unless there is one. Only at initialisation, and for a cluster that the token
 * remembers without one: elsewhere a missing head is damage.
 */
export async function createKekSet(database: Database, tx: Transaction): Promise<void> {
  if (await database.table(headsTable).exists(tx, { set: kekSet })) return
  const head = database.head(kekSet)
  await head.create(tx)
  await head.advance(tx, await database.table(keksTable).revisions(tx))
}
