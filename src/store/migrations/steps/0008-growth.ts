import { integers, sealed, table, uuid, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const intents = sealed(
  'intents',
  [
    `material ${uuid} NOT NULL`,
    'cka_id VARBINARY(255) NOT NULL',
    ...words('algorithm', 'state'),
    ...integers('created_at'),
  ],
  ['KEY (state, created_at)'],
)

const tallies = table('tallies', [
  'name VARCHAR(64) NOT NULL',
  'stripe SMALLINT NOT NULL',
  'n BIGINT NOT NULL',
  'PRIMARY KEY (name, stripe)',
])

/**
 * Growing tables are neither scanned nor counted: intents of token objects leave the table of all key parts, and leases
 * are counted as they come and go. An older program keeps its intents among the key parts, where this one finds them by
 * the index; it has no engine that makes leases.
 */
export const eighth: Migration = {
  number: 8,
  minReader: 5,
  async run(step) {
    await step.statement(intents)
    await step.statement('ALTER TABLE materials ADD KEY residence (residence, state)')
    await step.statement(tallies)
    await step.statement("INSERT IGNORE INTO tallies (name, stripe, n) SELECT 'leases', 0, COUNT(*) FROM leases")
  },
}
