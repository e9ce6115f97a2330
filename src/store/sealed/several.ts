import { Session, WriteSession } from '../pool/session.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Row, Table } from '../table.ts'
import type { SealedAccess } from './access.ts'
import { type Seal, sealNames } from './seal.ts'
import { quoted, type Shape } from './shape.ts'
import { unlessDamaged } from './sound.ts'
import { idClauses, selectFrom } from './statements.ts'

/** Rows of a sealed table by their ids, 64 per statement: for jobs that work through many. */
export function several<T extends Table>(
  shape: Shape,
  seal: Seal,
): Pick<SealedAccess<T>, 'sound' | 'lockSound' | 'removeAll'> {
  const select = selectFrom(shape.table, [...shape.fields.map(({ name }) => name), ...sealNames])

  async function sound(q: Reader, ids: readonly string[], held: boolean): Promise<Row<T>[]> {
    const session = Session.of(q)
    const found: Row<T>[] = []
    for (const { sql, values } of idClauses(ids)) {
      for (const stored of await session.rows(select + sql + (held ? ' FOR UPDATE' : ''), values)) {
        const row = await unlessDamaged(async () => seal.open(shape, stored))
        // Binary collations still take 'a' and 'a ' as equal.
        if (row === undefined || !ids.includes(String(row.id))) continue
        found.push((session instanceof WriteSession ? session.adopt(row, held) : row) as Row<T>)
      }
    }
    return found
  }

  return {
    sound: (q, ids) => sound(q, ids, false),
    lockSound: (tx, ids) => sound(WriteSession.of(tx), ids, true),
    removeAll: (tx, ids) => removeAll(shape, tx, ids),
  }
}

/** Deletes rows by their ids, 64 per statement; returns how many there were. */
export async function removeAll(shape: Shape, tx: Transaction, ids: readonly string[]): Promise<number> {
  const from = `DELETE FROM ${quoted(shape.table)}`
  let removed = 0
  for (const { sql, values } of idClauses(ids)) removed += await WriteSession.of(tx).run(from + sql, values)
  return removed
}
