import { flags, integers, sealed, uuid, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const devices = sealed(
  'audit_devices',
  [
    'path VARCHAR(255) NOT NULL',
    ...words('type'),
    'description MEDIUMTEXT NOT NULL',
    'options MEDIUMTEXT NOT NULL',
    ...flags('local'),
    ...integers('created_at'),
  ],
  ['UNIQUE KEY (path)'],
)

const heads = sealed(
  'audit_heads',
  [
    `device ${uuid} NOT NULL`,
    `incarnation ${uuid} NOT NULL`,
    'node VARCHAR(255) NOT NULL',
    ...integers('sequence'),
    ...words('hash'),
    ...integers('started_at', 'updated_at'),
  ],
  ['UNIQUE KEY (device, incarnation)'],
)

export const fourth: Migration = {
  number: 4,
  minReader: 1,
  async run(step) {
    await step.statement(devices)
    await step.statement(heads)
  },
}
