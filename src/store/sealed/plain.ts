import { WriteSession } from '../pool/session.ts'
import type { Transaction } from '../reader.ts'
import type { New, Row, Stored, Table } from '../table.ts'
import type { PlainAccess } from './access.ts'
import { only } from './inserted.ts'
import { reading } from './reading.ts'
import { discard, removeWhere } from './sealed.ts'
import { removeAll } from './several.ts'
import { Shape } from './shape.ts'
import { insertInto, updateOf, whereClause } from './statements.ts'

type Values = Readonly<Record<string, unknown>>

/** Rows of a table without MACs. */
export function plainAccess<T extends Table>(table: T): PlainAccess<T> {
  const shape = new Shape(table)
  const into = insertInto(
    table.name,
    shape.fields.map(({ name }) => name),
  )

  async function insertMany(tx: Transaction, rows: readonly New<T>[]): Promise<Row<T>[]> {
    const stored = rows.map((row) => shape.encode(row as Values))
    for (const row of stored) await WriteSession.of(tx).insert(table.name, into, row)
    return stored.map((values) => shape.decode(values) as Row<T>)
  }

  function assign(tx: Transaction, where: Values, changes: Values, how: (name: string) => string): Promise<number> {
    const fields = Object.keys(changes).map((property) => shape.field(property))
    const stored = fields.map(({ property, column }): Stored => column.encode(changes[property]))
    const clause = whereClause(shape, where)
    const sql =
      updateOf(
        table.name,
        fields.map(({ name }) => name),
        how,
      ) + clause.sql
    return WriteSession.of(tx).run(sql, [...stored, ...clause.values])
  }

  return {
    ...reading<T>(shape, [], (stored) => shape.decode(stored)),
    insertMany,
    insert: async (tx, row) => only(await insertMany(tx, [row])),
    change: (tx, where, changes) => assign(tx, where, changes as Values, () => '?'),
    add: (tx, where, deltas) => assign(tx, where, deltas as Values, (name) => `${name} + ?`),
    removeAll: (tx, ids) => removeAll(shape, tx, ids),
    discard: (tx, where) => discard(shape, tx, where),
    removeWhere: (tx, where, options) => removeWhere(shape, tx, where, options?.limit),
  }
}
