import { Session, WriteSession } from '../pool/session.ts'
import type { Transaction } from '../reader.ts'
import type { Row, Stored, Table } from '../table.ts'
import type { SealedAccess } from './access.ts'
import { type Seal, sealNames } from './seal.ts'
import { quoted, type Shape } from './shape.ts'
import { unlessDamaged } from './sound.ts'
import { idClauses, selectFrom } from './statements.ts'

/** Rows of a sealed table by their ids, 64 per statement: for jobs that work through many. */
export function several<T extends Table>(
  shape: Shape,
  seal: Seal,
): Pick<SealedAccess<T>, 'sound' | 'lockAll' | 'removeAll'> {
  const select = selectFrom(shape.table, [...shape.fields.map(({ name }) => name), ...sealNames])

  async function read(
    session: Session,
    ids: readonly string[],
    suffix: string,
    take: (stored: readonly Stored[]) => Promise<Row<T> | undefined>,
  ): Promise<Row<T>[]> {
    const found: Row<T>[] = []
    for (const { sql, values } of idClauses(ids)) {
      for (const stored of await session.rows(select + sql + suffix, values)) {
        const row = await take(stored)
        // Binary collations still take 'a' and 'a ' as equal.
        if (row !== undefined && ids.includes(String(row.id))) found.push(row)
      }
    }
    return found
  }
  const open = async (stored: readonly Stored[]) => (await seal.open(shape, stored)) as Row<T>

  return {
    async sound(q, ids) {
      const session = Session.of(q)
      const rows = await read(session, ids, '', (stored) => unlessDamaged(() => open(stored)))
      if (session instanceof WriteSession) for (const row of rows) session.adopt(row)
      return rows
    },

    async lockAll(tx, ids) {
      const session = WriteSession.of(tx)
      const rows = await read(session, ids, ' FOR UPDATE', open)
      for (const row of rows) session.adopt(row, true)
      return rows
    },

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
