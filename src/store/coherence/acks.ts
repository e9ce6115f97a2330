import type { Version } from '../../workload.ts'
import type { Connection } from '../pool/connection.ts'
import type { Stored } from '../table.ts'

/** Records in rows the versions of groups that a registration has learned. Never goes backwards. */
export async function acknowledge(
  connection: Connection,
  registration: string,
  groups: readonly Version[],
): Promise<void> {
  const rows = groups.map(() => '(?, ?, ?)').join(', ')
  const inserted = groups.flatMap(([group, v]): Stored[] => [registration, group, v])
  // MySQL names the new row, MariaDB has VALUES(), which MySQL will drop: both run a CASE.
  const given = `CASE bucket ${groups.map(() => 'WHEN ? THEN ?').join(' ')} END`
  const sql = `INSERT INTO acks (registration, bucket, v) VALUES ${rows}
    ON DUPLICATE KEY UPDATE v = GREATEST(v, ${given})`
  await connection.run(sql, [...inserted, ...groups.flat()])
}
