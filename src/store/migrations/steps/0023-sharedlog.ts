import type { Migration } from '../migration.ts'

/** Older programs register without one, and look at acknowledgements alone. */
export const twentyThird: Migration = {
  number: 23,
  minReader: 22,
  run: (step) => step.statement('ALTER TABLE registrations ADD COLUMN shared_log VARCHAR(36)'),
}
