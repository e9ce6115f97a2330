import { flags, integers, sealed, uuid, words } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const authorities = sealed(
  'pki_authorities',
  [
    `default_issuer ${uuid} NOT NULL`,
    `default_key ${uuid} NOT NULL`,
    ...flags('default_follows_latest'),
    ...words('residence'),
    'urls MEDIUMTEXT',
    ...integers('changed_at'),
  ],
  ['UNIQUE KEY (mount)'],
)

const clusters = sealed(
  'pki_clusters',
  ['site VARCHAR(64) NOT NULL', 'path TEXT NOT NULL', 'aia_path TEXT NOT NULL'],
  ['UNIQUE KEY (mount, site)'],
)

const keys = sealed(
  'pki_keys',
  [
    'name VARCHAR(512)',
    ...words('type'),
    ...integers('bits', 'created_at'),
    `material ${uuid} NOT NULL`,
    `managed_key ${uuid}`,
    'fingerprint BINARY(32) NOT NULL',
  ],
  ['UNIQUE KEY (mount, name)', 'UNIQUE KEY (mount, fingerprint)', 'KEY (managed_key, id)'],
)

const issuers = sealed(
  'pki_issuers',
  [
    'name VARCHAR(512)',
    `key_id ${uuid} NOT NULL`,
    'certificate MEDIUMBLOB NOT NULL',
    'fingerprint BINARY(32) NOT NULL',
    ...words('leaf_not_after_behavior', 'revocation_signature_algorithm'),
    'usages TEXT NOT NULL',
    'manual_chain MEDIUMTEXT',
    'aia MEDIUMTEXT',
    'revoked_at BIGINT',
    ...integers('changed_at', 'created_at'),
  ],
  ['UNIQUE KEY (mount, name)', 'UNIQUE KEY (mount, fingerprint)'],
)

/** Certificate authorities: for each mount a row of settings, its keys, its issuers, and the URLs of its sites. */
export const twelfth: Migration = {
  number: 12,
  minReader: 5,
  async run(step) {
    for (const statement of [authorities, clusters, keys, issuers]) await step.statement(statement)
  },
}
