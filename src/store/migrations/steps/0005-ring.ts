import { integers, sealed, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const looseMounts = sealed(
  'loose_mounts',
  ['path VARCHAR(512) NOT NULL', ...words('type', 'state'), ...integers('since')],
  ['UNIQUE KEY (mount)'],
)

export const fifth: Migration = {
  number: 5,
  // A program that reads keys must know the new column, because the seal covers it.
  minReader: 5,
  async run(step) {
    await step.statement('ALTER TABLE transit_keys ADD COLUMN rotate_at BIGINT, ADD KEY (rotate_at)')
    await step.statement(looseMounts)
  },
}
