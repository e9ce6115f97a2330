import { DamagedRow } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { SortedList } from '../sortedlist.ts'
import type { Row, Table } from '../table.ts'
import type { Member, SealedAccess } from './access.ts'
import { type Head, type HeadRow, memberList } from './heads.ts'

/** A row of the set, and the database's digest of its contents. */
type Contents = Member & { readonly contents: string }

interface Known<V> extends Contents {
  readonly value: V
}

/** A set as it was verified, or written, in one transaction. */
export interface SetState<V> {
  readonly head: HeadRow
  /** By id. */
  readonly members: SortedList<Known<V>>
}

/** A change of a set. */
export interface Advance<T extends Table> {
  /** Ids of members that leave, unless they are among the rows. */
  readonly gone: readonly string[]
  /** Rows that it has inserted or updated. */
  readonly rows: readonly Row<T>[]
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
  #known: SortedList<Known<V>> = memberList<Known<V>>([])

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
    const reading = this.#table.members(q).then((members) => this.#verify(q, members))
    const head = await this.#head.verified(q, reading)
    return { head, members: await reading }
  }

  /** As read, for a change: other writers of the set wait until the transaction ends. Must be its first read. */
  async readToChange(tx: Transaction): Promise<SetState<V>> {
    const whole = this.#known.size <= this.#readWhole
    const [, members, rows] = await Promise.all([
      this.#head.lock(tx),
      this.#table.members(tx),
      whole ? this.#all(tx) : undefined,
    ])
    const verified = await this.#verify(tx, members, rows)
    return { head: await this.#head.verified(tx, verified), members: verified }
  }

  /** For a change of the set without reading it: the transaction fails with Outdated if it is another one by now. */
  assume(tx: Transaction, { head }: SetState<V>): void {
    this.#head.assume(tx, head)
  }

  /**
   * Advances the head of the set after a change.
   * @param state as read or assumed in this transaction
   * @returns the set that the transaction leaves behind
   */
  async advance(tx: Transaction, { members }: SetState<V>, { gone, rows }: Advance<T>): Promise<SetState<V>> {
    const written = rows.map((row) => {
      const member = this.#table.memberOf(row)
      return { ...member, value: this.#keep(row, member.contents) }
    })
    const left = members.changed(gone, written)
    const head = await this.#head.advance(tx, left)
    this.#known = left
    return { head, members: left }
  }

  /**
   * The rows, verified one by one; whether they are the whole set is for its head to say.
   * @param read all rows, if they were read with the members
   */
  async #verify(q: Reader, members: readonly Contents[], read?: readonly Row<T>[]): Promise<SortedList<Known<V>>> {
    const known = this.#known
    const before = new Map(Array.from(known, (one) => [one.id, one]))
    const news = members.filter(({ id, rev, contents }) => {
      const one = before.get(id)
      return one?.rev !== rev || one.contents !== contents
    })
    const rows = new Map((read ?? (await this.#rows(q, news))).map((row) => [row.id, row]))
    const come = news.map((member) => {
      const row = rows.get(member.id)
      if (row?.rev !== member.rev) throw this.#damaged(member.id)
      return { ...member, value: this.#keep(row, member.contents) }
    })
    for (const { id } of members) before.delete(id)
    this.#known = come.length + before.size > 0 ? known.changed(before.keys(), come) : known
    return this.#known
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
