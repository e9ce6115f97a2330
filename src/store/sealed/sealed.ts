import { createHash, randomUUIDv7 } from 'node:crypto'
import { Session, WriteSession } from '../pool/session.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { New, Row, Sealed, Stored, Table, Where } from '../table.ts'
import type { SealedAccess } from './access.ts'
import { only } from './inserted.ts'
import { reading } from './reading.ts'
import { type Seal, type Sound, sealNames } from './seal.ts'
import { several } from './several.ts'
import { quoted, Shape } from './shape.ts'
import { insertInto, limitClause, whereClause } from './statements.ts'

type Values = Readonly<Record<string, unknown>>

/** The columns of a change, and their places in a sealed row. */
interface Update {
  readonly changed: readonly string[]
  readonly at: readonly number[]
}

/** Columns that every change writes. */
const everyChange = ['rev', 'epoch', ...sealNames]

/** Tells which columns a change writes: those it names, and those of every change. @param names of all columns */
function updates(shape: Shape, names: readonly string[]): (changes: Values) => Update {
  const known = new Map<string, Update>()
  return (changes) => {
    const properties = Object.keys(changes)
    const made = known.get(properties.join())
    if (made) return made
    const set = new Set([...properties.map((property) => shape.field(property).name), ...everyChange])
    const at = names.flatMap((name, index) => (set.has(name) ? [index] : []))
    const update = { changed: at.map((index) => names[index] as string), at }
    known.set(properties.join(), update)
    return update
  }
}

/** Rows of a sealed table: verified when read, sealed when written, compared when replaced. */
export function sealedAccess<T extends Table>(table: T, seal: Seal): SealedAccess<T> {
  const shape = new Shape(table)
  const names = [...shape.fields.map(({ name }) => name), ...sealNames]
  const reads = reading<T>(shape, sealNames, (stored) => seal.open(shape, stored))
  const into = insertInto(table.name, names)
  const updating = updates(shape, names)

  function fresh(row: New<T>): Values & Sealed {
    return { id: randomUUIDv7(), namespace: '', mount: '', ...(row as Values), rev: 1, epoch: seal.epoch }
  }

  async function insertMany(tx: Transaction, rows: readonly New<T>[]): Promise<Row<T>[]> {
    const session = WriteSession.of(tx)
    const closed: Sound[] = []
    for (const row of rows) closed.push(await seal.close(shape, fresh(row)))
    for (const { sealed } of closed) await session.insert(table.name, into, sealed)
    return closed.map(({ row }) => session.adopt(row, true) as Row<T>)
  }

  return {
    ...reads,
    ...several<T>(shape, seal),
    get: (q, id) => reads.find(q, { id } as unknown as Where<T>),

    members: (q) => listMembers(q, table.name, names),
    memberOf: (row) => memberOf(row as unknown as Values & Sealed, seal.sealedOf(shape, row as object)),
    revisions: (q) => listRevisions(q, table.name),

    insert: async (tx, row) => only(await insertMany(tx, [row])),
    insertMany,

    async update(tx, row, changes) {
      const session = WriteSession.of(tx)
      const old = owned(table.name, session, row)
      const next = { ...old, ...(changes as Values), id: old.id, rev: old.rev + 1, epoch: seal.epoch }
      const { sealed, row: written } = await seal.close(shape, next)
      const { changed, at } = updating(changes as Values)
      const replaced = { id: old.id, rev: old.rev, values: at.map((index) => sealed[index] ?? null) }
      session.disown(row as object)
      await session.replace(table.name, changed, replaced, session.changedFault(row as object))
      return session.adopt(written, true) as Row<T>
    },

    async remove(tx, row) {
      const session = WriteSession.of(tx)
      const old = owned(table.name, session, row)
      session.disown(row as object)
      await session.remove(table.name, old, session.changedFault(row as object))
    },

    assume: (tx, row) => WriteSession.of(tx).assume(table.name, row as unknown as Sealed),

    discard: (tx, where) => discard(shape, tx, where),
    removeWhere: (tx, where, options) => removeWhere(shape, tx, where, options?.limit),
  }
}

const memberOf = ({ id, rev }: Values & Sealed, sealed: readonly Stored[] | undefined) => ({
  id,
  rev,
  contents: sealed ? contentsOf(sealed) : '',
})

/** The digest that `listMembers` has the database make. */
function contentsOf(sealed: readonly Stored[]): string {
  const digest = createHash('sha256')
  for (const [index, value] of sealed.entries()) {
    if (index > 0) digest.update(',')
    if (value === null) digest.update('-')
    else {
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value), 'utf8')
      digest.update(`${bytes.length}:`).update(bytes)
    }
  }
  return digest.digest('hex')
}

/** The row's id and rev, if it was read, assumed or written in this transaction. */
function owned(table: string, session: WriteSession, row: unknown): Values & Sealed {
  if (!session.owns(row as object))
    throw new Error(`${table}: a row can be changed only in the transaction that read it, and only once`)
  return row as Values & Sealed
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
