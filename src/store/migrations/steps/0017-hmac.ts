import type { Migration } from '../migration.ts'

/** NULL reads as false, so that no row is sealed again; an older program refuses keys that have it set. */
export const seventeenth: Migration = {
  number: 17,
  minReader: 14,
  run: (step) => step.statement('ALTER TABLE transit_keys ADD COLUMN hmac_in_hsm_only TINYINT'),
}
