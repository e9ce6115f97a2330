import { flags, integers, sealed, uuid } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const leases = sealed(
  'leases',
  [
    'lease_id VARCHAR(700) NOT NULL',
    `token ${uuid} NOT NULL`,
    'payload MEDIUMTEXT NOT NULL',
    ...flags('renewable'),
    ...integers('ttl_seconds', 'max_ttl_seconds', 'issued_at', 'expires_at'),
    'last_renewal_at BIGINT',
    ...integers('attempts', 'due_at'),
  ],
  ['UNIQUE KEY (lease_id)', 'KEY (token, id)', 'KEY (mount)', 'KEY (due_at)'],
)

export const second: Migration = {
  number: 2,
  minReader: 1,
  run: (step) => step.statement(leases),
}
