import type { Migration } from './migration.ts'

/**
 * Leases are counted for each mount beside all together, for the quotas of mounts. While programs of the version before
 * serve beside this one, the leases that they give and end are missing in the counts of mounts; that of all stays right, and the write of a
 * quota corrects that of its mount.
 */
export const twentieth: Migration = {
  number: 20,
  minReader: 16,
  run: (step) =>
    step.statement(
      "INSERT IGNORE INTO tallies (name, stripe, n) SELECT CONCAT('leases-', mount), 0, COUNT(*) FROM leases GROUP BY mount",
    ),
}
