import type { Reader, Transaction } from '../reader.ts'
import type { Changes, New, Row, Table, Where } from '../table.ts'

/** A row that belongs to a set. */
export interface Member {
  readonly id: string
  readonly rev: number
}

type Name<T extends Table> = keyof Row<T> & string
type Key = string | number

/**
 * One page of a listing: rows beyond `after` in the order of `by`, at most `limit`. `by` is unique within `where`: one
 * column, or two where many rows may have the same value in the first, such as a time and the id.
 */
export interface Page<T extends Table> {
  readonly by: Name<T> | readonly [Name<T>, Name<T>]
  readonly after?: Key | readonly [Key, Key]
  readonly limit: number
  readonly descending?: boolean
  /**
   * The index to read. Where `where` fixes the first columns of several indexes, servers may choose by those alone and
   * walk through all rows before the cursor.
   */
  readonly index?: string
}

/** The reads of every table. Rows of sealed tables are verified; a bad one throws DamagedRow. */
export interface Reading<T extends Table> {
  /** The one row that matches; more than one is a bug of the caller. */
  find(q: Reader, where: Where<T>): Promise<Row<T> | undefined>
  /** At most `limit` rows beyond the cursor. NULLs come first, and never after a cursor. */
  list(q: Reader, where: Where<T>, page: Page<T>): Promise<Row<T>[]>
  /** Whether any row matches; nothing is verified. */
  exists(q: Reader, where: Where<T>): Promise<boolean>
  /** Which of these values any row has in the column; reads one row for each. Nothing is verified. */
  among<K extends Name<T>>(q: Reader, column: K, values: readonly Row<T>[K][]): Promise<Set<Row<T>[K]>>
  /**
   * The number of rows, counted by reading them all: for small tables. Nothing is verified. In a transaction `where` is
   * not empty: members of Group Replication answer a count of all rows even when they have ended the transaction for
   * another's commit, and never say so (docs/databases.md).
   */
  count(q: Reader, where: Where<T>): Promise<number>
}

/** The writes of every table. */
interface Inserting<T extends Table> extends Reading<T> {
  /**
   * When a unique key is taken the transaction is repeated once, so that it can read the existing row; then
   * DuplicateRow is thrown.
   */
  insert(tx: Transaction, row: New<T>): Promise<Row<T>>
  insertMany(tx: Transaction, rows: readonly New<T>[]): Promise<Row<T>[]>
  /** Removes the rows with these ids unread; returns how many there were. Only for tables with ids. */
  removeAll(tx: Transaction, ids: readonly string[]): Promise<number>
  /** Removes all matching rows unread. */
  discard(tx: Transaction, where: Where<T>): Promise<void>
  /** Removes at most `limit` matching rows unread; returns how many. */
  removeWhere(tx: Transaction, where: Where<T>, options?: { limit?: number }): Promise<number>
}

/** Reads that a transaction can begin with. */
export interface LockingReading<T extends Table> extends Reading<T> {
  /**
   * As find, but other transactions that lock or write the row wait until this one ends, instead of failing its
   * compare-and-set. Must be the transaction's first read: later reads are then as new as the row. Between nodes of a
   * cluster nothing waits, and the compare-and-set decides.
   */
  lock(tx: Transaction, where: Where<T>): Promise<Row<T> | undefined>
}

/** The one way to a sealed table. */
export interface SealedAccess<T extends Table> extends Inserting<T>, LockingReading<T> {
  get(q: Reader, id: string): Promise<Row<T> | undefined>
  /** The existing rows among these ids, without damaged ones, which are logged. */
  sound(q: Reader, ids: readonly string[]): Promise<Row<T>[]>
  /** The existing rows among these ids, locked as by `lock`; a damaged one throws DamagedRow. */
  lockAll(tx: Transaction, ids: readonly string[]): Promise<Row<T>[]>
  /**
   * Every row of the set without its contents, unverified: id and rev are for the head, which tells whether they are
   * right. `contents` is the database's own digest of the other columns: a reader that holds verified rows reads again
   * those that differ.
   */
  members(q: Reader): Promise<(Member & { readonly contents: string })[]>
  /** The row as `members` will list it; without `contents` if the process has forgotten how it is stored. */
  memberOf(row: Row<T>): Member & { readonly contents: string }
  /** As `members`, but id and rev alone. */
  revisions(q: Reader): Promise<Member[]>
  /**
   * Compare-and-set on `rev` of a row that this transaction read or wrote; on a conflict the transaction is repeated.
   * Rows of one table may be changed in another order: none may take a unique value that another one gives up in the same
   * transaction.
   */
  update(tx: Transaction, row: Row<T>, changes: Changes<T>): Promise<Row<T>>
  /**
   * Adopts a row from a coherent cache, unread: the transaction fails with Outdated if it changes the row and that is not
   * the current one.
   */
  assume(tx: Transaction, row: Row<T>): void
  /** Compare-and-set on `rev`, as update. */
  remove(tx: Transaction, row: Row<T>): Promise<void>
}

/** A table without MACs: counters and the like. */
export interface PlainAccess<T extends Table> extends Inserting<T>, LockingReading<T> {
  /**
   * Sets columns of every row that matches; returns how many matched (compare-and-set: name the old value in `where`).
   */
  change(tx: Transaction, where: Where<T>, changes: Changes<T>): Promise<number>
  /** Adds to integer columns of every row that matches; returns how many matched. */
  add(tx: Transaction, where: Where<T>, deltas: Changes<T>): Promise<number>
}

export type Access<T extends Table> = T['sealed'] extends true ? SealedAccess<T> : PlainAccess<T>
