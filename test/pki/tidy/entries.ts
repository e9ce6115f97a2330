import { createPool, type RowDataPacket } from 'mysql2/promise'
import type { Clock } from '../../../src/clock.ts'
import type { TidiedLists } from '../../../src/engines/pki/tidy/deps.ts'

/**
 * The entries of revocation lists in a table of the test's own: an entry may leave once a list made past its end has
 * carried it.
 */
export const entriesSchema = `CREATE TABLE listed_entries (crl_issuer VARCHAR(64), site VARCHAR(32), seq BIGINT, mount VARCHAR(36),
  not_after BIGINT, carried TINYINT NOT NULL DEFAULT 0, PRIMARY KEY (crl_issuer, site, seq))`

/** Entries, with a record of the builds and removals of lists: `rebuilt` has the mount of each build. */
export interface Entries extends TidiedLists, AsyncDisposable {
  readonly rebuilt: string[]
  /** The CRL issuer and site of each removal of entries. */
  readonly removals: string[]
  /** The mounts and CRL issuers whose lists were withdrawn. */
  readonly withdrawn: string[]
  /** Mounts whose issuers were deleted. */
  readonly deleted: string[]
  add(entry: {
    crlIssuer: string
    site: string
    seq: number
    mount: string
    notAfter: number
    carried: boolean
  }): Promise<void>
  readonly left: (mount: string) => Promise<number[]>
}

export function openEntries(url: string, clock: Clock): Entries {
  const pool = createPool({ uri: url, connectionLimit: 2 })
  const rebuilt: string[] = []
  const removals: string[] = []
  const withdrawn: string[] = []
  const deleted: string[] = []
  return {
    rebuilt,
    removals,
    withdrawn,
    deleted,
    async add({ crlIssuer, site, seq, mount, notAfter, carried }) {
      const values = [crlIssuer, site, seq, mount, notAfter, carried ? 1 : 0]
      await pool.query('INSERT INTO listed_entries VALUES (?)', [values])
    },
    async left(mount) {
      const sql = 'SELECT seq FROM listed_entries WHERE mount = ? ORDER BY seq'
      const [rows] = await pool.query<RowDataPacket[]>(sql, [mount])
      return rows.map(({ seq }) => Number(seq))
    },
    // Entries are added as if already taken in.
    absorb: async () => undefined,
    async removeEntries({ crlIssuer, site }, end) {
      removals.push(`${crlIssuer} ${site}`)
      const of = [crlIssuer, site]
      const ended = 'crl_issuer = ? AND site = ? AND not_after <= ?'
      const first = `SELECT MIN(seq) AS first FROM listed_entries WHERE ${ended} AND carried = 0`
      const [[found]] = await pool.query<RowDataPacket[]>(first, [...of, end])
      const upTo = Number(found?.first ?? Number.MAX_SAFE_INTEGER) - 1
      await pool.query(`DELETE FROM listed_entries WHERE ${ended} AND seq <= ?`, [...of, end, upTo])
      return { has: ({ seq }) => seq <= upTo }
    },
    async rebuild({ uuid }) {
      rebuilt.push(uuid)
      const sql = 'UPDATE listed_entries SET carried = 1 WHERE mount = ? AND not_after < ?'
      await pool.query(sql, [uuid, clock.wall()])
      return []
    },
    async afterDeletion({ uuid }) {
      deleted.push(uuid)
      return []
    },
    async withdraw(mount, crlIssuer) {
      withdrawn.push(`${mount} ${crlIssuer}`)
    },
    async associate(mount) {
      const sql = 'SELECT COUNT(*) AS n FROM pki_revocations WHERE mount = ? AND crl_issuer IS NULL'
      const [rows] = await pool.query<RowDataPacket[]>(sql, [mount])
      return { missing: Number(rows[0]?.n), fixed: 0 }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
