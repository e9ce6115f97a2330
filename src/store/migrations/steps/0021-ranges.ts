import type { Migration } from '../migration.ts'

/**
 * Manifests say in ranges of numbers, and in `superseded`, which entries revocation lists leave out. An older program
 * misreads ranges and drops `superseded` when it changes a manifest: it must not start beside this one. No table
 * changes.
 */
export const twentyFirst: Migration = {
  number: 21,
  minReader: 21,
  run: async () => undefined,
}
