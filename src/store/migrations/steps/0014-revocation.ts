import { integers, sealed, table, uuid } from '../ddl.ts'
import type { Migration } from '../migration.ts'

const site = 'site VARCHAR(32) NOT NULL'
const serial = 'serial VARBINARY(20) NOT NULL'
/** SHA-256 over the name and the key of a list's signer. */
const crlIssuer = 'crl_issuer BINARY(32) NOT NULL'

const numbers = sealed('pki_crl_numbers', [crlIssuer, ...integers('number')], ['UNIQUE KEY (crl_issuer)'])

const ledgers = sealed('pki_ledgers', [crlIssuer, site, ...integers('last')], ['UNIQUE KEY (crl_issuer, site)'])

const manifests = sealed(
  'pki_manifests',
  [crlIssuer, ...['absorbed', 'segments', 'published'].map((name) => `${name} MEDIUMTEXT NOT NULL`)],
  // The head of the set is verified by revisions and ids: this key holds both, while a row may have a megabyte.
  ['UNIQUE KEY (crl_issuer)', 'KEY by_rev (rev, id)'],
)

const segments = sealed(
  'pki_segments',
  [crlIssuer, site, ...integers('created_at'), 'entries MEDIUMBLOB NOT NULL', 'marks MEDIUMBLOB NOT NULL'],
  // Lists ids without reading the rows.
  ['KEY by_age (created_at, id)'],
)

const fingerprints = sealed('pki_fingerprints', ['fingerprints MEDIUMBLOB NOT NULL'])

const lists = sealed(
  'pki_crls',
  [
    crlIssuer,
    site,
    'scope VARCHAR(16) NOT NULL',
    'kind VARCHAR(16) NOT NULL',
    ...integers('shards', 'shard', 'number'),
    'base BIGINT',
    ...integers('this_update', 'next_update', 'bytes'),
    'head MEDIUMBLOB NOT NULL',
    'tail MEDIUMBLOB NOT NULL',
    'parts MEDIUMTEXT NOT NULL',
    'covered MEDIUMTEXT NOT NULL',
    'sha256 BINARY(32) NOT NULL',
  ],
  ['UNIQUE KEY (mount, site, crl_issuer, scope, kind, shards, shard)', 'KEY by_update (site, next_update, id)'],
)

const queue = sealed(
  'pki_revocation_queue',
  [serial, site, ...integers('requested_at'), 'confirmed_by VARCHAR(32)', 'confirmed_at BIGINT'],
  ['UNIQUE KEY (mount, serial, site)'],
)

const tidies = table('pki_tidies', [
  `mount ${uuid} NOT NULL`,
  site,
  'status MEDIUMTEXT NOT NULL',
  ...integers('updated_at'),
  'PRIMARY KEY (mount, site)',
])

/** From now on the count is kept with the rows. */
const countRevocations = `INSERT IGNORE INTO tallies (name, stripe, n)
  SELECT CONCAT('revocations-', mount, '-', site), 0, COUNT(*) FROM pki_revocations GROUP BY mount, site`

/** Revocations in the order in which lists take them in, the lists, and their tidying. */
export const fourteenth: Migration = {
  number: 14,
  // A program that reads revocations and settings must know their new columns, because the seal covers them.
  minReader: 14,
  async run(step) {
    await step.statement(
      `ALTER TABLE pki_revocations ADD COLUMN crl_issuer BINARY(32), ADD COLUMN seq BIGINT, ADD COLUMN reason BIGINT,
        ADD UNIQUE KEY by_seq (crl_issuer, site, seq), ADD KEY by_issuer (crl_issuer, site, id), ADD KEY by_expiry (mount, site, not_after, serial)`,
    )
    await step.statement('ALTER TABLE pki_authorities ADD COLUMN crl MEDIUMTEXT, ADD COLUMN tidy MEDIUMTEXT')
    await step.statement(countRevocations)
    for (const statement of [numbers, ledgers, manifests, segments, fingerprints, lists, queue, tidies]) {
      await step.statement(statement)
    }
  },
}
