/** A connection lent for reading. Outside store/ it is only passed on to `Access` and `Head`. */
export interface Reader {
  /** Whether all its reads see one moment (a snapshot or a transaction). Heads can be verified only there. */
  readonly consistent: boolean
}

/** A transaction. The function that receives it must be repeatable: it runs again from the start after a conflict. */
export interface Transaction extends Reader {
  /**
   * Declares that this transaction replaces or removes the cached value (table, id): the caller is answered only when
   * no worker can use it any more. `table` is the cache's, `id` the cache's key.
   */
  touch(table: string, id: string): void
  /**
   * Adds to the count of a name, which is kept beside the rows because counting them would read them all.
   * `Database.tally` reads it. Names consist of letters, digits, `_` and `-`.
   */
  tally(name: string, delta: number): void
  /**
   * Holds the count of a name: other holders wait until this transaction has ended, so that none counts past a limit.
   * Must be the transaction's first statement; several names are held in sorted order.
   */
  holdTally(name: string): Promise<void>
  /** The count of a name as this transaction sees it, without what it adds itself by `tally`. */
  tallied(name: string): Promise<number>
  /** Runs once after the COMMIT, before the caller of the transaction is answered; its errors are only logged. */
  onCommit(work: () => Promise<void>): void
  /** Forgets the counts of all names that begin with this one. */
  discardTallies(prefix: string): Promise<void>
  /**
   * Throws LeaseLost unless `fence` still holds the job's lease; nobody can take it over before this transaction ends.
   * @param place the place the job will have reached once this transaction is committed
   */
  fence(job: string, fence: bigint, place?: string): Promise<void>
}
