import { Batch } from '../group.ts'
import type { Transactions } from '../pool/transactions.ts'
import { answers } from '../sealed/reading.ts'
import { type Seal, sealNames } from '../sealed/seal.ts'
import { quoted, Shape } from '../sealed/shape.ts'
import type { Row, Stored, Table } from '../table.ts'
import { stampSql } from './versions.ts'

type Values = Readonly<Record<string, unknown>>
type Tables = Readonly<Record<string, Table>>
/** At most one row of each table. */
type Found<T extends Tables> = { readonly [K in keyof T]: Row<T[K]> | undefined }

/** A cache's read on a miss, in one statement: in autocommit that is one snapshot and needs no transaction. */
export interface JoinedOptions<T extends Tables, V> {
  readonly tables: T
  /** Values of the unique key that all these tables have. @param id the cache's key */
  key(id: string): Values
  value(rows: Found<T>): V | undefined
}

/** A value and v of its leaf as of one moment. */
export interface Stamped<V> {
  readonly stamp: number
  readonly value: V | undefined
}

export type Joined<V> = (line: Transactions, leaf: number, id: string) => Promise<Stamped<V>>

interface Wanted {
  readonly key: Values
  readonly leaf: number
}

interface Part {
  readonly name: string
  readonly shape: Shape
  readonly columns: readonly string[]
  open(stored: readonly Stored[]): unknown
}

/** Reads for each key v of its leaf, then the columns of the tables in the order of `parts`. */
export function joinedRows<T extends Tables, V>(options: JoinedOptions<T, V>, seal: Seal): Joined<V> {
  const parts = Object.entries(options.tables).map(([name, table]): Part => {
    const shape = new Shape(table)
    const names = shape.fields.map((field) => field.name)
    if (!table.sealed) return { name, shape, columns: names, open: (stored) => shape.decode(stored) }
    return { name, shape, columns: [...names, ...sealNames], open: (stored) => seal.open(shape, stored) }
  })

  const columns = parts.flatMap(({ columns }, index) => columns.map((name) => `t${index}.${quoted(name)}`))

  /** Select list and FROM clause for one key. @param values of the whole statement; those of this key are added */
  function select({ key, leaf }: Wanted, values: Stored[]): string {
    const stamp = stampSql(leaf)
    values.push(...stamp.values)
    const joins = parts.map(({ shape }, index) => {
      const terms = Object.entries(key).map(([property, value]) => {
        const { name, column } = shape.field(property)
        values.push(column.encode(value))
        return `t${index}.${quoted(name)} = ?`
      })
      return `LEFT JOIN ${quoted(shape.table)} t${index} ON ${terms.join(' AND ')}`
    })
    return `${stamp.select}, ${columns.join(', ')} FROM ${stamp.from} ${joins.join(' ')}`
  }

  /** Keys that wait for a lane at the same time are read together. */
  const batches = new Map<Transactions, Batch<Wanted, Stored[]>>()
  const batchOf = (line: Transactions): Batch<Wanted, Stored[]> => {
    const known = batches.get(line)
    if (known !== undefined) return known
    const batch = new Batch<Wanted, Stored[]>(
      async (wanted) => {
        const values: Stored[] = []
        const selects = padded(wanted).map((one) => select(one, values))
        return (await line.askAll(selects, values)).slice(0, wanted.length)
      },
      { largest: Math.max(...sizes), queueLimit: mostWaiting, sharesFate: true },
    )
    batches.set(line, batch)
    return batch
  }

  async function rowsOf(stored: readonly Stored[], key: Values): Promise<Found<T>> {
    const rows: Record<string, unknown> = {}
    let at = 0
    for (const { name, columns, open } of parts) {
      const own = stored.slice(at, at + columns.length)
      at += columns.length
      const row = own.every((value) => value === null) ? undefined : ((await open(own)) as Values)
      rows[name] = row !== undefined && answers(row, key) ? row : undefined
    }
    return rows as Found<T>
  }

  return async (line, leaf, id) => {
    const key = options.key(id)
    const [stamp, ...stored] = await batchOf(line).add({ key, leaf })
    return { stamp: Number(stamp), value: options.value(await rowsOf(stored, key)) }
  }
}

/** The possible numbers of selects in a statement: few, since the server prepares another statement for each. */
const sizes = [1, 2, 3, 4, 6, 8, 12, 16]
const mostWaiting = 256

/** Repeats the last key until a statement of one of these sizes is full. */
function padded(wanted: readonly Wanted[]): readonly Wanted[] {
  const size = sizes.find((one) => one >= wanted.length) ?? wanted.length
  return Array.from({ length: size }, (_, index) => wanted[Math.min(index, wanted.length - 1)] as Wanted)
}
