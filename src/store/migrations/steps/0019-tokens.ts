import type { Migration } from '../migration.ts'

/**
 * Tokens are counted as they come and go. An older program does not count: the tokens that it makes or removes while
 * both serve stay uncounted.
 */
export const nineteenth: Migration = {
  number: 19,
  minReader: 16,
  run: (step) =>
    step.statement("INSERT IGNORE INTO tallies (name, stripe, n) SELECT 'tokens', 0, COUNT(*) FROM tokens"),
}
