import type { Migration } from '../migration.ts'

/** An older program would find a head with a trail damaged: its seal covers the new column. */
export const twentySecond: Migration = {
  number: 22,
  minReader: 22,
  run: (step) => step.statement('ALTER TABLE heads ADD COLUMN trail TEXT'),
}
