import { table } from '../ddl.ts'
import type { Migration } from '../migration.ts'

/**
 * Versions of two levels: the buckets of `versions` become groups, and `version_leaves` counts the leaves below them.
 * An older program increments and acknowledges groups alone, and both kinds serve together: a transaction that is not
 * `itemised` by leaves counts for every leaf of its groups.
 */
export const seventh: Migration = {
  number: 7,
  minReader: 5,
  async run(step) {
    await step.statement('ALTER TABLE versions ADD COLUMN itemised BIGINT NOT NULL DEFAULT 0')
    await step.statement('ALTER TABLE registrations ADD COLUMN lease_milliseconds INT NOT NULL DEFAULT 1000')
    await step.statement(table('version_leaves', ['leaf INT NOT NULL', 'v BIGINT NOT NULL', 'PRIMARY KEY (leaf)']))
  },
}
