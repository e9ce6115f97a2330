/** What a migration may do. */
export interface MigrationStep {
  /**
   * Runs one statement (DDL commits by itself) after making sure that the lease is still ours. Statements are written
   * so that a second run after a crash does no harm (IF NOT EXISTS, INSERT IGNORE; an ADD COLUMN of a column, and an
   * ADD KEY of a named key, that is there counts as done, so that what belongs to the column is added by the same
   * statement).
   */
  statement(sql: string): Promise<void>
}

/**
 * One numbered change of the schema: first expand (what the version before can still read and write), in a later
 * release contract. A change of sealed columns reads and seals rows again in the application.
 */
export interface Migration {
  readonly number: number
  /** The oldest `number` a program must know to serve on the result; a later migration never lowers it. */
  readonly minReader: number
  run(step: MigrationStep): Promise<void>
}
