import { DamagedRow } from '../faults.ts'
import type { Reader } from '../reader.ts'
import type { Row, Table } from '../table.ts'
import type { SealedAccess } from './access.ts'

/** The row, or undefined when it is missing or damaged: damage was logged, and must not keep a job from other rows. */
export const sound = <T extends Table>(table: SealedAccess<T>, q: Reader, id: string): Promise<Row<T> | undefined> =>
  unlessDamaged(() => table.get(q, id))

/** The result of `read`; undefined for a damaged row. */
export async function unlessDamaged<R>(read: () => Promise<R>): Promise<R | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof DamagedRow) return undefined
    throw error
  }
}
