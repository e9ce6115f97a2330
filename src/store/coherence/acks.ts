import type { Version } from '../../workload.ts'
import type { Connection } from '../pool/connection.ts'
import type { Stored } from '../table.ts'

/** Writes that a registration has learned these versions of groups. Never goes backwards. */
export async function acknowledge(
  connection: Connection,
  registration: string,
  groups: readonly Version[],
): Promise<void> {
  const rows = groups.map(() => '(?, ?, ?)').join(', ')
  const values = groups.flatMap(([group, v]): Stored[] => [registration, group, v])
  const sql = `INSERT INTO acks (registration, bucket, v) VALUES ${rows}
    ON DUPLICATE KEY UPDATE v = GREATEST(v, VALUES(v))`
  await connection.run(sql, values)
}
