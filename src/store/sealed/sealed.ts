import { randomUUIDv7 } from 'node:crypto'
import { Session, WriteSession } from '../pool/session.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { New, Row, Sealed, Table, Where } from '../table.ts'
import type { SealedAccess } from './access.ts'
import { only } from './inserted.ts'
import { reading } from './reading.ts'
import { type Seal, type Sound, sealNames } from './seal.ts'
import { several } from './several.ts'
import { quoted, Shape } from './shape.ts'
import { insertInto, limitClause, portions, updateOf, whereClause } from './statements.ts'

type Values = Readonly<Record<string, unknown>>

/** Rows of a sealed table: verified when read, sealed when written, compared when replaced. */
export function sealedAccess<T extends Table>(table: T, seal: Seal): SealedAccess<T> {
  const shape = new Shape(table)
  const names = [...shape.fields.map(({ name }) => name), ...sealNames]
  const reads = reading<T>(shape, sealNames, (stored) => seal.open(shape, stored))
  const update = `${updateOf(table.name, names, () => '?')} WHERE id = ? AND rev = ?`

  function fresh(row: New<T>): Values & Sealed {
    return { id: randomUUIDv7(), namespace: '', mount: '', ...(row as Values), rev: 1, epoch: seal.epoch }
  }

  async function insertMany(tx: Transaction, rows: readonly New<T>[]): Promise<Row<T>[]> {
    const session = WriteSession.of(tx)
    const closed: Sound[] = []
    for (const row of rows) closed.push(await seal.close(shape, fresh(row)))
    const stored = closed.map(({ sealed }) => sealed)
    for (const portion of portions(stored)) await session.write(table.name, insertInto(table.name, names, portion))
    return closed.map(({ row }) => session.adopt(row, true) as Row<T>)
  }

  /** The row's id and rev, if it was read or written in this transaction. */
  function owned(session: WriteSession, row: Row<T>): Values & Sealed {
    if (!session.owns(row as object))
      throw new Error(`${table.name}: a row can be changed only in the transaction that read it, and only once`)
    return row as unknown as Values & Sealed
  }

  return {
    ...reads,
    ...several<T>(shape, seal),
    get: (q, id) => reads.find(q, { id } as unknown as Where<T>),

    members: (q) => listMembers(q, table.name, names),
    revisions: (q) => listRevisions(q, table.name),

    insert: async (tx, row) => only(await insertMany(tx, [row])),
    insertMany,

    async update(tx, row, changes) {
      const session = WriteSession.of(tx)
      const old = owned(session, row)
      const next = { ...old, ...(changes as Values), id: old.id, rev: old.rev + 1, epoch: seal.epoch }
      const { sealed, row: written } = await seal.close(shape, next)
      const compared = !session.holds(row as object)
      session.disown(row as object)
      await session.write(table.name, { sql: update, values: [...sealed, old.id, old.rev] }, { compared })
      return session.adopt(written, true) as Row<T>
    },

    async remove(tx, row) {
      const session = WriteSession.of(tx)
      const { id, rev } = owned(session, row)
      const sql = `DELETE FROM ${quoted(table.name)} WHERE id = ? AND rev = ?`
      session.disown(row as object)
      await session.write(table.name, { sql, values: [id, rev] }, { compared: !session.holds(row as object) })
    },

    discard: (tx, where) => discard(shape, tx, where),
    removeWhere: (tx, where, options) => removeWhere(shape, tx, where, options?.limit),
  }
}

async function listMembers(q: Reader, table: string, columns: readonly string[]) {
  // Each value with its length, so that nothing can be moved from one column into the next.
  const texts = columns.map(
    (name) => `COALESCE(CONCAT(LENGTH(${quoted(name)}), ':', CAST(${quoted(name)} AS BINARY)), '-')`,
  )
  const contents = `SHA2(CONCAT_WS(',', ${texts.join(', ')}), 256)`
  const rows = await Session.of(q).rows(`SELECT id, rev, ${contents} FROM ${quoted(table)}`)
  return rows.map(([id, rev, digest]) => ({ id: String(id), rev: Number(rev), contents: String(digest) }))
}

async function listRevisions(q: Reader, table: string) {
  const rows = await Session.of(q).rows(`SELECT id, rev FROM ${quoted(table)}`)
  return rows.map(([id, rev]) => ({ id: String(id), rev: Number(rev) }))
}

/** Deletes matching rows, together with the transaction's next writes. */
export function discard(shape: Shape, tx: Transaction, where: Values): Promise<void> {
  const clause = whereClause(shape, where)
  const sql = `DELETE FROM ${quoted(shape.table)}${clause.sql}`
  return WriteSession.of(tx).write(shape.table, { sql, values: clause.values })
}

/** Deletes at most `limit` matching rows; returns how many. */
export function removeWhere(shape: Shape, tx: Transaction, where: Values, limit: number | undefined): Promise<number> {
  const clause = whereClause(shape, where)
  const sql = `DELETE FROM ${quoted(shape.table)}${clause.sql}${limitClause(limit)}`
  return WriteSession.of(tx).run(sql, clause.values)
}
