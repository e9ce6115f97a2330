import { DamagedRow } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Row, Table } from '../table.ts'
import type { Member, SealedAccess } from './access.ts'
import type { Head, HeadRow } from './heads.ts'

/** A row of the set, and the database's digest of its contents. */
type Contents = Member & { readonly contents: string }

interface Known<V> extends Contents {
  readonly value: V
}

/** A set as it was verified, or written, in one transaction. */
export interface SetState<V> {
  readonly head: HeadRow
  /** In no order. */
  readonly members: readonly Known<V>[]
}

/** A change of a set. */
export interface Advance<T extends Table> {
  /** Ids of members that leave, or come back with another revision. */
  readonly gone: ReadonlySet<string>
  /** Members that come. */
  readonly news: readonly Member[]
  /** Writes their rows. @returns them */
  write(): Promise<readonly Row<T>[]>
}

interface KnownSetOptions<T extends Table, V> {
  /** The name of the table. */
  readonly name: string
  readonly table: SealedAccess<T>
  readonly head: Head
  /** The value kept of a verified row; `contents` differs wherever two states of a row do. */
  readonly keep: (row: Row<T>, contents: string) => V
  /** Up to so many rows a change reads all of them at once, which spares it a round trip: for short rows. */
  readonly readWhole?: number
}

/** Of more rows that are not known than this, the whole set is read, in pages. */
const fewRows = 20
const pageSize = 500

/**
 * A small set of sealed rows under one head, of which a process keeps what it has verified: every reading compares
 * the whole set with its head, but reads and verifies only the rows that it does not know in their present state.
 */
export class KnownSet<T extends Table, V> {
  readonly #name: string
  readonly #table: SealedAccess<T>
  readonly #head: Head
  readonly #keep: (row: Row<T>, contents: string) => V
  readonly #readWhole: number
  /** By id. After a restore another row may have the same id and rev, though not the same contents. */
  #known = new Map<string, Known<V>>()

  constructor({ name, table, head, keep, readWhole = 0 }: KnownSetOptions<T, V>) {
    this.#name = name
    this.#table = table
    this.#head = head
    this.#keep = keep
    this.#readWhole = readWhole
  }

  /**
   * The whole set.
   * @throws DamagedRow when a row was edited, removed, added or restored outside this server
   */
  async read(q: Reader): Promise<SetState<V>> {
    const reading = this.#table.members(q)
    const head = await this.#head.verified(q, reading)
    return { head, members: await this.#verify(q, await reading) }
  }

  /** As read, for a change: other writers of the set wait until the transaction ends. Must be its first read. */
  async readToChange(tx: Transaction): Promise<SetState<V>> {
    const whole = this.#known.size <= this.#readWhole
    const [, members, rows] = await Promise.all([
      this.#head.lock(tx),
      this.#table.members(tx),
      whole ? this.#all(tx) : undefined,
    ])
    const head = await this.#head.verified(tx, members)
    return { head, members: await this.#verify(tx, members, rows) }
  }

  /** For a change of the set without reading it: the transaction fails with Outdated if it is another one by now. */
  assume(tx: Transaction, { head }: SetState<V>): void {
    this.#head.assume(tx, head)
  }

  /**
   * Changes the set: its head first, which every change locks before any row.
   * @param state as read or assumed in this transaction
   * @returns the set that the transaction leaves behind
   */
  async advance(tx: Transaction, { members }: SetState<V>, { gone, news, write }: Advance<T>): Promise<SetState<V>> {
    const kept = members.filter(({ id }) => !gone.has(id))
    const head = await this.#head.advance(tx, [...kept, ...news])
    const rows = await write()
    const written = rows.map((row) => {
      const member = this.#table.memberOf(row)
      return { ...member, value: this.#keep(row, member.contents) }
    })
    for (const id of gone) this.#known.delete(id)
    for (const one of written) this.#known.set(one.id, one)
    return { head, members: [...kept, ...written] }
  }

  /** @param read all rows, if they were read with the members */
  async #verify(q: Reader, members: readonly Contents[], read?: readonly Row<T>[]): Promise<readonly Known<V>[]> {
    const before = this.#known
    const same = (one: Contents) => {
      const known = before.get(one.id)
      return known?.rev === one.rev && known.contents === one.contents ? known : undefined
    }
    const news = members.filter((one) => same(one) === undefined)
    const rows = new Map((read ?? (await this.#rows(q, news))).map((row) => [row.id, row]))
    const set = members.map((member) => {
      const known = same(member)
      if (known) return known
      const row = rows.get(member.id)
      if (row?.rev !== member.rev) throw this.#damaged(member.id)
      return { ...member, value: this.#keep(row, member.contents) }
    })
    this.#known = new Map(set.map((one) => [one.id, one]))
    return set
  }

  /** The verified rows of these members; when they are many, of the whole set. */
  async #rows(q: Reader, news: readonly Member[]): Promise<readonly Row<T>[]> {
    if (news.length > fewRows) return this.#all(q)
    return Promise.all(
      news.map(async ({ id }) => {
        const row = await this.#table.get(q, id)
        if (row === undefined) throw this.#damaged(id)
        return row
      }),
    )
  }

  async #all(q: Reader): Promise<readonly Row<T>[]> {
    const rows: Row<T>[] = []
    for (let page: Row<T>[] | undefined; page === undefined || page.length === pageSize; rows.push(...page)) {
      const after = (page?.at(-1) as Member | undefined)?.id
      page = await this.#table.list(q, {}, { by: 'id', limit: pageSize, ...(after === undefined ? {} : { after }) })
    }
    return rows
  }

  #damaged(id: string): DamagedRow {
    return new DamagedRow(this.#name, id, 'the row is not the one that its set lists')
  }
}
