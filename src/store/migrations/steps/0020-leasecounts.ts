import type { Migration } from '../migration.ts'

/**
 * Leases are counted for each mount too, for the quotas of mounts. While an older program serves beside this one, the
 * leases that it gives and ends are missing in the counts of mounts; the total stays right, and writing a quota
 * corrects the count of its mount.
 */
export const twentieth: Migration = {
  number: 20,
  minReader: 16,
  run: (step) =>
    step.statement(
      "INSERT IGNORE INTO tallies (name, stripe, n) SELECT CONCAT('leases-', mount), 0, COUNT(*) FROM leases GROUP BY mount",
    ),
}
