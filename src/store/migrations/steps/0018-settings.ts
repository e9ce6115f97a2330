import { sealed } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const settings = sealed(
  'system_settings',
  ['kind VARCHAR(64) NOT NULL', 'name VARCHAR(255) NOT NULL', 'value MEDIUMTEXT NOT NULL'],
  ['UNIQUE KEY (kind, name)'],
)

/** Settings of the whole server: audited headers, CORS. */
export const eighteenth: Migration = {
  number: 18,
  minReader: 14,
  run: (step) => step.statement(settings),
}
