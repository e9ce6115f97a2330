import { integers, sealed, table, uuid } from '../ddl.ts'
import type { Migration } from '../migration.ts'

/** A site, as named in the configuration. */
const site = 'site VARCHAR(32) NOT NULL'
/** Up to 20 octets (RFC 5280 4.1.2.2). Bytes sort like their hexadecimal text with colons, in a third of its size. */
const serial = 'serial VARBINARY(20) NOT NULL'

/**
 * No MAC: a certificate is sealed by the signature of its CA. Pages of a site are read from an index alone; the order
 * of expiry is for tidying and for filtered lists.
 */
const certificates = table('pki_certificates', [
  `id ${uuid} NOT NULL`,
  `mount ${uuid} NOT NULL`,
  site,
  serial,
  `issuer ${uuid} NOT NULL`,
  'der BLOB NOT NULL',
  ...integers('not_after', 'created_at'),
  'PRIMARY KEY (id)',
  'UNIQUE KEY (mount, serial)',
  'KEY by_site (mount, site, serial)',
  'KEY by_expiry (mount, site, not_after, serial)',
  'KEY by_issuer (mount, site, issuer, not_after, serial)',
])

const revocations = sealed(
  'pki_revocations',
  [site, serial, `issuer ${uuid} NOT NULL`, ...integers('not_after', 'revoked_at')],
  ['UNIQUE KEY (mount, serial)', 'KEY by_site (mount, site, serial)'],
)

/**
 * Groups of versions for certificates alone (coherence/leaves.ts): an older program acknowledges them like any other.
 */
const groups = Array.from({ length: 128 }, (_, n) => `(${256 + n}, 0)`)

/** Certificates, their revocations, and counts whose names contain the mount. */
export const eleventh: Migration = {
  number: 11,
  minReader: 5,
  async run(step) {
    await step.statement(certificates)
    await step.statement(revocations)
    await step.statement(`INSERT IGNORE INTO versions (bucket, v) VALUES ${groups.join(', ')}`)
    await step.statement('ALTER TABLE tallies MODIFY name VARCHAR(128) NOT NULL')
  },
}
