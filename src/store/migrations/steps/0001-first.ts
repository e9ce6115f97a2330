import { flags, integers, sealed, table, uuid, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const tables: readonly string[] = [
  // store
  sealed(
    'heads',
    ['`set` VARCHAR(255) NOT NULL', '`count` BIGINT NOT NULL', 'digest BINARY(32) NOT NULL', 'seq BIGINT NOT NULL'],
    ['UNIQUE KEY (`set`)'],
  ),
  table('versions', ['bucket SMALLINT NOT NULL', 'v BIGINT NOT NULL', 'PRIMARY KEY (bucket)']),
  table('registrations', [
    `id ${uuid} NOT NULL`,
    `incarnation ${uuid} NOT NULL`,
    'condemned TINYINT NOT NULL DEFAULT 0',
    'PRIMARY KEY (id)',
    'KEY (incarnation)',
  ]),
  table('acks', [
    `registration ${uuid} NOT NULL`,
    'bucket SMALLINT NOT NULL',
    'v BIGINT NOT NULL',
    'PRIMARY KEY (registration, bucket)',
  ]),

  // keys
  sealed('cluster', [
    'name VARCHAR(255) NOT NULL',
    ...words('state'),
    ...integers('created_at'),
    'unseal_hash VARBINARY(255)',
  ]),
  sealed('keks', [
    ...words('purpose'),
    'check_value VARBINARY(32) NOT NULL',
    ...integers('mechanism'),
    ...words('state', 'origin'),
    ...integers('created_at'),
    'cka_id VARBINARY(255) NOT NULL',
  ]),
  table('kek_proofs', [
    `kek ${uuid} NOT NULL`,
    `incarnation ${uuid} NOT NULL`,
    'proven_at BIGINT NOT NULL',
    'PRIMARY KEY (kek, incarnation)',
  ]),
  sealed('system_keys', [
    ...words('purpose'),
    `kek ${uuid} NOT NULL`,
    ...integers('mechanism'),
    '`blob` VARBINARY(1024) NOT NULL',
    'check_value VARBINARY(32) NOT NULL',
    ...words('state'),
    ...integers('created_at'),
  ]),
  sealed(
    'materials',
    [
      `owner ${uuid} NOT NULL`,
      ...integers('version'),
      ...words('part', 'algorithm'),
      ...integers('size_bytes'),
      ...words('residence'),
      `kek ${uuid}`,
      'mechanism BIGINT',
      '`blob` MEDIUMBLOB',
      'cka_id VARBINARY(255)',
      'public_key BLOB',
      'fingerprint VARBINARY(64)',
      ...flags('exportable', 'local', 'never_extractable', 'always_sensitive'),
      ...words('origin'),
      ...integers('created_at'),
      'created_by VARCHAR(255) NOT NULL',
      ...flags('ever_plaintext'),
      ...words('state'),
    ],
    ['UNIQUE KEY (owner, version, part)', 'KEY (kek, id)', 'KEY (mount)'],
  ),
  table('usage_counters', [`material ${uuid} NOT NULL`, 'used BIGINT NOT NULL', 'PRIMARY KEY (material)']),

  // request
  sealed(
    'mounts',
    [
      'path VARCHAR(512) NOT NULL',
      ...words('type'),
      'description TEXT NOT NULL',
      'accessor VARCHAR(128) NOT NULL',
      'config MEDIUMTEXT NOT NULL',
      'options MEDIUMTEXT',
      ...flags('local', 'seal_wrap', 'touched'),
      ...integers('created_at'),
    ],
    ['UNIQUE KEY (namespace, path)', 'UNIQUE KEY (accessor)'],
  ),

  // auth
  sealed(
    'policies',
    ['name VARCHAR(512) NOT NULL', '`text` MEDIUMTEXT NOT NULL', ...integers('created_at', 'updated_at')],
    ['UNIQUE KEY (namespace, name)'],
  ),
  sealed(
    'tokens',
    [
      'hash BINARY(32) NOT NULL',
      'accessor VARCHAR(128) NOT NULL',
      `parent ${uuid}`,
      'path TEXT NOT NULL',
      'policies MEDIUMTEXT NOT NULL',
      'meta MEDIUMTEXT',
      'display_name TEXT NOT NULL',
      ...words('type'),
      ...flags('orphan', 'renewable'),
      ...integers('ttl_seconds', 'explicit_max_ttl_seconds', 'period_seconds', 'num_uses', 'created_at'),
      'expires_at BIGINT',
      'last_renewal_at BIGINT',
      ...words('state'),
    ],
    ['UNIQUE KEY (hash)', 'UNIQUE KEY (accessor)', 'KEY (parent)', 'KEY (expires_at)', 'KEY (type)'],
  ),

  // transit
  sealed(
    'transit_keys',
    [
      'name VARCHAR(512) NOT NULL',
      ...words('type'),
      ...flags('derived', 'convergent'),
      ...integers('convergent_version'),
      ...words('kdf'),
      ...flags('exportable', 'allow_plaintext_backup'),
      ...integers(
        'key_size',
        'auto_rotate_seconds',
        'min_decryption_version',
        'min_encryption_version',
        'min_available_version',
        'latest_version',
      ),
      ...flags('deletion_allowed', 'imported', 'allow_rotation', 'soft_deleted'),
      'backup_info MEDIUMTEXT',
      'restore_info MEDIUMTEXT',
      ...integers('created_at'),
    ],
    ['UNIQUE KEY (mount, name)'],
  ),
  sealed(
    'transit_versions',
    [
      `key_id ${uuid} NOT NULL`,
      ...integers('version'),
      `material ${uuid} NOT NULL`,
      `hmac_material ${uuid}`,
      `prk_material ${uuid}`,
      ...integers('convergent_version', 'created_at'),
      'managed_key VARCHAR(255)',
      'certificate_chain MEDIUMTEXT',
    ],
    ['UNIQUE KEY (key_id, version)', 'KEY (mount)'],
  ),
  sealed('transit_config', [...flags('disable_upsert'), ...integers('cache_size')], ['UNIQUE KEY (mount)']),
]

export const first: Migration = {
  number: 1,
  minReader: 1,
  async run(step) {
    for (const statement of tables) await step.statement(statement)
    const buckets = Array.from({ length: 256 }, (_, bucket) => `(${bucket}, 0)`)
    await step.statement(`INSERT IGNORE INTO versions (bucket, v) VALUES ${buckets.join(', ')}`)
  },
}
