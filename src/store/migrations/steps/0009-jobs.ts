import type { Migration } from '../migration.ts'

/** The place a job has reached in a large table, and indexes that find rows past their retention. */
export const ninth: Migration = {
  number: 9,
  minReader: 5,
  async run(step) {
    await step.statement("ALTER TABLE job_leases ADD COLUMN place VARCHAR(255) NOT NULL DEFAULT ''")
    await step.statement('ALTER TABLE audit_heads ADD KEY audit_heads_by_time (updated_at)')
    await step.statement('ALTER TABLE remounts ADD KEY remounts_by_time (moved_at)')
  },
}
