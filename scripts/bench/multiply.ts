import { createConnection } from 'mysql2/promise'
import type { MariaDb } from '../embedded/mariadb.ts'
import { never } from './bulk.ts'

const rowsPerStatement = 100_000

/**
 * Multiplies the rows of one key: `name-1` and so on. The seals are copies that match no row, so that only the names
 * can be read: they are listed from an index, unverified.
 */
export async function multiplyKeys(database: MariaDb, name: string, keys: number): Promise<void> {
  const connection = await createConnection({ uri: database.url })
  try {
    const [columns] = await connection.query('SHOW COLUMNS FROM transit_keys')
    const others = (columns as { Field: string }[]).map(({ Field }) => Field).filter((field) => !own.has(field))
    for (let first = 1; first <= keys; first += rowsPerStatement) {
      await connection.query(
        `INSERT INTO transit_keys (id, name, ${others})
         SELECT CONCAT('00000000-0000-4000-8000-', LPAD(seq, 12, '0')), CONCAT(name, '-', seq), ${others}
         FROM transit_keys JOIN seq_${first}_to_${Math.min(keys, first + rowsPerStatement - 1)} WHERE name = ?`,
        [name],
      )
    }
  } finally {
    await connection.end()
  }
}

const own: ReadonlySet<string> = new Set(['id', 'name'])

/**
 * Multiplies the row of the certificate with that serial. The new serials are `prefix` and eight digits from 0 on; the
 * certificate inside stays the same, which no reader checks.
 */
export async function multiplyCertificates(
  database: MariaDb,
  { serial, prefix, count }: { readonly serial: string; readonly prefix: string; readonly count: number },
): Promise<void> {
  const connection = await createConnection({ uri: database.url })
  try {
    await connection.query(
      `INSERT INTO pki_certificates (id, mount, site, serial, issuer, der, not_after, created_at)
       SELECT CONCAT('00000000-0000-4000-8000-', LPAD(seq, 12, '0')), mount, site,
         UNHEX(CONCAT('${prefix}', LPAD(seq, 8, '0'))), issuer, der, not_after, created_at
       FROM pki_certificates JOIN seq_0_to_${count - 1} WHERE serial = UNHEX(?)`,
      [serial],
    )
  } finally {
    await connection.end()
  }
}

/**
 * Makes the rows of so many revocations that are on lists already, numbered from 1: they are not sealed, and never
 * read.
 * @param mount its uuid @param crlIssuer in hexadecimal
 */
export async function multiplyRevocations(
  database: MariaDb,
  { mount, crlIssuer, count }: { readonly mount: string; readonly crlIssuer: string; readonly count: number },
): Promise<void> {
  const connection = await createConnection({ uri: database.url })
  const row = `CONCAT('00000000-0000-4000-8001-', LPAD(seq, 12, '0')), '', ?, 1, 1, '', 1, REPEAT('x', 32), 'default',
    UNHEX(CONCAT('41', LPAD(HEX(seq), 38, '0'))), '', ${never}, 1, UNHEX(?), seq, NULL`
  try {
    for (let first = 1; first <= count; first += rowsPerStatement) {
      const numbers = `seq_${first}_to_${Math.min(count, first + rowsPerStatement - 1)}`
      await connection.query(`INSERT INTO pki_revocations SELECT ${row} FROM ${numbers}`, [mount, crlIssuer])
    }
    await connection.query('ANALYZE TABLE pki_revocations')
  } finally {
    await connection.end()
  }
}
