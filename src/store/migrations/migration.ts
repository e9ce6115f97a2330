/** How a migration changes the schema. */
export interface MigrationStep {
  /**
   * Runs one statement (DDL commits by itself) after making sure that the lease is still ours. A statement must do no
   * harm when it runs again after a crash: IF NOT EXISTS, INSERT IGNORE. An ADD COLUMN, or an ADD KEY with a name,
   * counts as done when it is already there, so everything that belongs to the column is added in the same statement.
   */
  statement(sql: string): Promise<void>
}

/**
 * One numbered change of the schema: first expand (the version before can still read and write), in a later release
 * contract. A change of sealed columns reads and seals rows again in the application.
 */
export interface Migration {
  readonly number: number
  /** The oldest `number` a program must know to serve on the result; a later migration never lowers it. */
  readonly minReader: number
  run(step: MigrationStep): Promise<void>
}
