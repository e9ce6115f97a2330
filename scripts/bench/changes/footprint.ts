import type { Connection, RowDataPacket } from 'mysql2/promise'

export type Value = string | number | Buffer | null
export interface StoredRow {
  readonly table: string
  readonly values: Readonly<Record<string, Value>>
}

/** The rows of one change. */
export interface Footprint {
  readonly inserted: readonly StoredRow[]
  /** As they were before. */
  readonly updated: readonly StoredRow[]
}

/** Tables of coherence, transactions, jobs and evidence: not the change itself. */
const apart = /^(registrations|acks|outcomes|job_leases|kek_proofs|audit_heads|(minimal|version|schema|migration)\w*)$/

/** Reads the newest rows before and after one change. Nothing else may write meanwhile. */
export async function footprintOf(connection: Connection, change: () => Promise<void>): Promise<Footprint> {
  const [tables] = await connection.query<RowDataPacket[]>(
    `SELECT table_name AS name FROM information_schema.columns
      WHERE table_schema = DATABASE() AND column_name = 'rev'`,
  )
  const names = tables.map(({ name }) => String(name)).filter((name) => !apart.test(name))
  const before = await rowsOf(connection, names)
  await change()
  const after = await rowsOf(connection, names)
  return {
    inserted: [...after].filter(([key]) => !before.has(key)).map(([, row]) => row),
    updated: [...before]
      .filter(([key, { values }]) => after.has(key) && after.get(key)?.values.rev !== values.rev)
      .map(([, row]) => row),
  }
}

async function rowsOf(connection: Connection, tables: readonly string[]): Promise<Map<string, StoredRow>> {
  const rows = new Map<string, StoredRow>()
  for (const table of tables) {
    const [found] = await connection.query<RowDataPacket[]>(`SELECT * FROM \`${table}\``)
    for (const values of found as StoredRow['values'][]) rows.set(`${table} ${values.id}`, { table, values })
  }
  return rows
}
