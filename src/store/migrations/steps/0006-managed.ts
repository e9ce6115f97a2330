import { flags, integers, sealed, uuid, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const managedKeys = sealed(
  'managed_keys',
  [
    'name VARCHAR(128) NOT NULL',
    ...words('library'),
    'token_label VARCHAR(64)',
    'slot BIGINT',
    'key_label VARCHAR(255) NOT NULL',
    'key_id VARCHAR(510) NOT NULL',
    ...integers('mechanism'),
    ...words('curve'),
    ...integers('key_bits'),
    'usages TEXT NOT NULL',
    ...flags('any_mount', 'allow_generate_key', 'allow_replace_key', 'allow_store_key', 'force_rw_session'),
    ...integers('max_parallel'),
    `pin ${uuid} NOT NULL`,
    ...flags('pin_refused'),
    ...integers('created_at', 'updated_at'),
  ],
  ['UNIQUE KEY (name)'],
)

export const sixth: Migration = {
  number: 6,
  minReader: 1,
  run: (step) => step.statement(managedKeys),
}
