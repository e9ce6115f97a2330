import { sealed } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const roles = sealed(
  'pki_roles',
  ['name VARCHAR(512) NOT NULL', 'settings MEDIUMTEXT NOT NULL'],
  ['UNIQUE KEY (mount, name)'],
)

/** Roles of certificate authorities. */
export const tenth: Migration = {
  number: 10,
  minReader: 5,
  run: (step) => step.statement(roles),
}
