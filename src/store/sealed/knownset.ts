import type { Clock } from '../../clock.ts'
import { DamagedRow } from '../faults.ts'
import { WriteSession } from '../pool/session.ts'
import type { Reader, Transaction } from '../reader.ts'
import { SortedList } from '../sortedlist.ts'
import type { Row, Table } from '../table.ts'
import type { Member, SealedAccess } from './access.ts'
import { type Head, type HeadRow, lists, memberList } from './heads.ts'
import { changedBetween } from './trail.ts'

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
  /** By their keys. */
  readonly values: SortedList<V>
}

/** A set, and rows of it that a transaction may change. */
interface ToChange<T extends Table, V> {
  readonly state: SetState<V>
  readonly rows: readonly Row<T>[]
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
  /** Of a value: no two members share it. */
  readonly keyOf: (value: V) => string
  readonly clock: Clock
}

/** Of more rows that are not known than this, the whole set is read, in pages. */
const fewRows = 20
const pageSize = 500
/** How long a process takes the head's word for what has changed, until it looks at every row again. */
const compareMilliseconds = 10_000

/**
 * A small set of sealed rows under one head, of which a process keeps what it has verified. The head tells which members
 * have changed lately: a process that was there before reads those alone. Otherwise it compares the whole set, and reads
 * and verifies the rows that it does not know in their present state.
 */
export class KnownSet<T extends Table, V> {
  readonly #name: string
  readonly #table: SealedAccess<T>
  readonly #head: Head
  readonly #keep: (row: Row<T>, contents: string) => V
  readonly #keyOf: (value: V) => string
  readonly #clock: Clock
  /** The latest that was read, or committed here. */
  #known: SetState<V> | undefined
  /** When the whole set was last found sound, in monotonic milliseconds. */
  #comparedAt = Number.NEGATIVE_INFINITY

  constructor({ name, table, head, keep, keyOf, clock }: KnownSetOptions<T, V>) {
    this.#name = name
    this.#table = table
    this.#head = head
    this.#keep = keep
    this.#keyOf = keyOf
    this.#clock = clock
  }

  /**
   * The set.
   * @throws DamagedRow when a row was edited, removed, added or restored outside this server; while the set changes all
   *   the time, some seconds later than that
   */
  async read(q: Reader): Promise<SetState<V>> {
    const head = await this.#head.read(q)
    // Where nothing has changed there is time to look at everything.
    return this.#read(q, head, head.seq !== this.#known?.head.seq)
  }

  /**
   * As read, for a change: other writers of the set wait until the transaction ends. Must be its first read.
   * @param rowsOf the rows that the change writes; they are guessed by what is known, to lock them with the head
   * @returns these rows too, for the transaction to change
   */
  async readToChange(tx: Transaction, rowsOf: (state: SetState<V>) => readonly Row<T>[]): Promise<ToChange<T, V>> {
    const guessed = this.#known ? rowsOf(this.#known) : []
    const [, held] = await Promise.all([this.#head.lock(tx), this.#held(tx, guessed)])
    const state = await this.#read(tx, await this.#head.read(tx), true)
    const wanted = rowsOf(state)
    const more = await this.#held(
      tx,
      wanted.filter((row) => !held.has(place(row))),
    )
    const rows = wanted.map((row) => held.get(place(row)) ?? more.get(place(row)) ?? this.#refuse(row))
    return { state, rows }
  }

  /** The rows as they are now, by id and revision, locked. */
  async #held(tx: Transaction, rows: readonly Row<T>[]): Promise<ReadonlyMap<string, Row<T>>> {
    const ids = rows.map((row) => memberIn(row).id)
    const held = ids.length === 0 ? [] : await this.#table.lockAll(tx, ids)
    return new Map(held.map((row) => [place(row), row]))
  }

  #refuse(row: Row<T>): never {
    throw this.#damaged(memberIn(row).id)
  }

  async #read(q: Reader, head: HeadRow, hurried: boolean): Promise<SetState<V>> {
    const due = this.#clock.monotonic() > this.#comparedAt + compareMilliseconds
    this.#known = (hurried && !due ? await this.#followed(q, head) : undefined) ?? (await this.#compared(q, head))
    return this.#known
  }

  /**
   * For a change of the set and of some of its rows without reading them: the transaction fails with Outdated if they
   * are other ones by now.
   */
  assume(tx: Transaction, { head }: SetState<V>, rows: readonly Row<T>[] = []): void {
    this.#head.assume(tx, head)
    for (const row of rows) this.#table.assume(tx, row)
  }

  /**
   * Advances the head of the set after a change.
   * @param state as read or assumed in this transaction
   * @returns the set that the transaction leaves behind
   */
  async advance(tx: Transaction, state: SetState<V>, change: Advance<T>): Promise<SetState<V>> {
    const { members, values } = this.#changed(state, change.gone, this.#knownOf(change.rows))
    const ids = new Set([...change.gone, ...change.rows.map((row) => memberIn(row).id)])
    const next = { head: await this.#head.advance(tx, members, [...ids]), members, values }
    WriteSession.of(tx).onVersions(() => {
      this.#known = next
    })
    return next
  }

  #knownOf(rows: readonly Row<T>[]): Known<V>[] {
    return rows.map((row) => {
      const member = this.#table.memberOf(row)
      return { ...member, value: this.#keep(row, member.contents) }
    })
  }

  #changed({ members, values }: Omit<SetState<V>, 'head'>, gone: Iterable<string>, news: readonly Known<V>[]) {
    const left = new Set([...gone, ...news.map(({ id }) => id)])
    const keys = [...left].flatMap((id) => {
      const member = members.get(id)
      return member ? [this.#keyOf(member.value)] : []
    })
    const newValues = news.map(({ value }) => value)
    return { members: members.changed(left, news), values: values.changed(keys, newValues) }
  }

  /** The known set with the changes since then; undefined when the head does not tell them, or they are not all. */
  async #followed(q: Reader, head: HeadRow): Promise<SetState<V> | undefined> {
    const known = this.#known
    const ids = known && changedBetween(known.head.trail, head.trail)
    if (known === undefined || ids === undefined) return undefined
    const rows = ids.size === 0 ? [] : await this.#table.sound(q, [...ids])
    const changed = this.#changed(known, ids, this.#knownOf(rows))
    return lists(head, changed.members) ? { head, ...changed } : undefined
  }

  /** The set, compared whole with its head. */
  async #compared(q: Reader, head: HeadRow): Promise<SetState<V>> {
    const began = this.#clock.monotonic()
    this.#comparedAt = Number.NEGATIVE_INFINITY
    const members = await this.#table.members(q)
    const known = this.#known ?? { members: memberList<Known<V>>([]), values: SortedList.of(this.#keyOf) }
    const before = new Map(Array.from(known.members, (one) => [one.id, one]))
    const news = members.filter(({ id, rev, contents }) => {
      const one = before.get(id)
      return one?.rev !== rev || one.contents !== contents
    })
    const rows = new Map((await this.#rows(q, news)).map((row) => [row.id, row]))
    const come = news.map((member) => {
      const row = rows.get(member.id)
      if (row?.rev !== member.rev) throw this.#damaged(member.id)
      return { ...member, value: this.#keep(row, member.contents) }
    })
    for (const { id } of members) before.delete(id)
    const changed = this.#changed(known, before.keys(), come)
    this.#head.require(head, changed.members)
    this.#comparedAt = began
    return { head, ...changed }
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

/** Every sealed row is one. */
const memberIn = (row: unknown): Member => row as Member

function place(row: unknown): string {
  const { id, rev } = memberIn(row)
  return `${id} ${rev}`
}
