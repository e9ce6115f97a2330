import { createConnection } from 'mysql2/promise'

/** A time in milliseconds that no test reaches. */
export const never = 32_503_680_000_000

/** An id in the middle of a table's rows, by the number of `idOf`. */
export const middle = (table: number): string => `01900000-0000-7000-800${table}-000000010000`

const idOf = (table: number): string => `CONCAT('01900000-0000-7000-800${table}-', LPAD(HEX(seq), 12, '0'))`
const sealedBy = (table: number, mount: string): string =>
  `${idOf(table)}, '', '${mount}', 1, 1, '', 1, REPEAT('x', 32)`
const named = `CONCAT('bulk', LPAD(seq, 9, '0'))`

/**
 * Many rows beside those that a test works with. They are not sealed, so that any use of one fails. Every second token
 * has a custom credential, every second key rotates by itself one day. Few certificates are of one site or of one
 * issuer; revoked ones are not stored.
 * @param mount uuid of the mount that has the keys and the certificates
 */
const inserts = (mount: string): Readonly<Record<string, string>> => ({
  tokens: `${sealedBy(0, '')}, UNHEX(LPAD(HEX(seq), 64, '0')), ${named}, NULL, 'auth/token/create', '["default"]', NULL,
    'token', IF(seq % 2, 'service', 'custom'), 0, 1, 3600, 0, 0, 0, 1, ${never}, NULL, 'active'`,
  leases: `${sealedBy(1, mount)}, CONCAT('transit/', ${named}), ${idOf(0)}, '{}', 1, 1, 1, 1, ${never}, NULL, 0, ${never}`,
  transit_keys: `${sealedBy(2, mount)}, ${named}, 'aes256-gcm96', 0, 0, 0, '', 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, NULL,
    NULL, 1, IF(seq % 2, NULL, ${never}), NULL`,
  transit_versions: `${sealedBy(3, mount)}, ${idOf(2)}, 1, ${idOf(4)}, NULL, NULL, 0, 1, NULL, NULL`,
  materials: `${sealedBy(4, mount)}, ${idOf(2)}, 1, 'key', 'aes256-gcm96', 32, 'wrapped', 'kek', 1, REPEAT('b', 40), NULL,
    NULL, NULL, 0, 1, 1, 1, 'generated', 1, '', 0, 'active', NULL`,
  usage_counters: `${idOf(4)}, 0`,
  pki_certificates: `${idOf(5)}, '${mount}', IF(seq % 1000, 'default', 'small'), UNHEX(LPAD(HEX(seq), 40, '0')),
    IF(seq % 1000 = 1, 'rare', 'often'), REPEAT('c', 600), ${never} + seq, 1`,
  pki_revocations: `${sealedBy(6, mount)}, 'default', UNHEX(CONCAT('ff', LPAD(HEX(seq), 38, '0'))), 'often', ${never}, 1, UNHEX(REPEAT('ab', 32)), seq, NULL`,
})

/** The tables that have no bound. */
export const largeTables = Object.keys(inserts(''))

/** Puts so many certificates into a PKI mount. @param mount its uuid */
export async function fillCertificates(url: string, mount: string, rows: number): Promise<void> {
  const connection = await createConnection(url)
  try {
    await connection.query('SET unique_checks = 0')
    await connection.query(
      `INSERT INTO pki_certificates SELECT ${inserts(mount).pki_certificates} FROM seq_1_to_${rows}`,
    )
    await connection.query('ANALYZE TABLE pki_certificates')
  } finally {
    await connection.end()
  }
}

/**
 * Puts so many rows into each large table, and makes all leaves of the versions, as if everything had changed once;
 * some outcomes are old.
 * @param mount uuid of the mount that has the keys
 */
export async function fill(url: string, mount: string, rows: number): Promise<void> {
  const connection = await createConnection(url)
  try {
    await connection.query('SET unique_checks = 0')
    for (const [table, row] of Object.entries(inserts(mount)))
      await connection.query(`INSERT INTO ${table} SELECT ${row} FROM seq_1_to_${rows}`)
    await connection.query(`INSERT IGNORE INTO version_leaves SELECT g.seq * 512 + l.seq, 1
      FROM seq_0_to_255 g, seq_0_to_259 l`)
    await connection.query(`INSERT IGNORE INTO version_leaves SELECT g.seq * 512 + l.seq, 1
      FROM seq_256_to_383 g, seq_0_to_63 l`)
    await connection.query(`INSERT INTO outcomes SELECT UNHEX(LPAD(HEX(seq), 32, '0')), 1, 1 FROM seq_1_to_12000`)
    await connection.query(`ANALYZE TABLE ${[...largeTables, 'version_leaves'].join()}`)
  } finally {
    await connection.end()
  }
}
