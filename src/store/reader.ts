/**
 * A connection lent for reading. It means nothing outside store/: it is passed to `Access` and `Head`.
 */
export interface Reader {
  /** Whether all reads of it see one moment (a snapshot or a transaction). Heads can be verified only there. */
  readonly consistent: boolean
}

/** A transaction. The function that receives it must be pure under repetition: it runs again whole after a conflict. */
export interface Transaction extends Reader {
  /**
   * Says that what caches hold under (table, id) is replaced or removed by this transaction: the caller is answered
   * only when no worker can use it any more. `table` is the cache's, `id` the cache's key.
   */
  touch(table: string, id: string): void
  /**
   * Adds to the count of a name: a number that is kept with the rows it counts, since counting reads them all.
   * `Database.tally` reads it. Names are of letters, digits, `_` and `-`.
   */
  tally(name: string, delta: number): void
  /** Forgets the counts of all names that begin with this one. */
  discardTallies(prefix: string): Promise<void>
  /**
   * Throws LeaseLost unless `fence` still holds the job's lease; nobody can take it over before this transaction ends.
   * @param place where the job has come to, once this transaction is committed
   */
  fence(job: string, fence: bigint, place?: string): Promise<void>
}
