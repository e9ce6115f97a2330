import type { Database } from '../../store/database.ts'
import { DamagedRow } from '../../store/faults.ts'
import { pages } from '../../store/pages.ts'
import { type Columns, column, defineTable, type Table } from '../../store/table.ts'

/** A table whose rows carry a MAC. */
export type SealedTable = Table<Columns, true>

/** A set with a sealed head. */
export interface SealedSet {
  /** The head's name. */
  readonly set: string
  /** The table of its members; absent where only the existence of the head counts. */
  readonly table?: SealedTable
}

/** The result of a walk over all sealed rows. */
export interface Verification {
  readonly rows: number
  /** Refused rows and sets, `table id: reason`. */
  readonly damaged: readonly string[]
}

const rowsAtOnce = 100

/**
 * Reads every row of sealed tables, and every set with its head, as their users would: for a token that has no memory
 * yet to compare them with. Rows added or removed meanwhile are not damage.
 */
export async function verifyRows(
  database: Database,
  tables: readonly SealedTable[],
  sets: readonly SealedSet[],
): Promise<Verification> {
  const damaged: string[] = []
  let rows = 0
  for (const table of tables) {
    const access = database.table(table)
    const ids = defineTable(table.name, { id: column.text() }, { sealed: false })
    for await (const page of pages(database, database.unverified(ids), {}, { by: 'id', limit: rowsAtOnce })) {
      const sound = new Set(
        (
          await database.read((q) =>
            access.sound(
              q,
              page.map(({ id }) => id),
            ),
          )
        ).map(({ id }) => id),
      )
      rows += sound.size
      for (const { id } of page) if (!sound.has(id)) damaged.push(...(await damageOf(database, table, id)))
    }
  }
  for (const set of sets) damaged.push(...(await damageOfSet(database, set)))
  return { rows, damaged }
}

/** The reason why a row is refused; empty if it is gone or sound by now. */
const damageOf = (database: Database, table: SealedTable, id: string): Promise<string[]> =>
  refusal(() => database.read((q) => database.table(table).get(q, id)))

const damageOfSet = (database: Database, { set, table }: SealedSet): Promise<string[]> =>
  refusal(() =>
    database.snapshot(async (q) => database.head(set).verify(q, table ? await database.table(table).members(q) : [])),
  )

async function refusal(read: () => Promise<unknown>): Promise<string[]> {
  try {
    await read()
    return []
  } catch (error) {
    if (error instanceof DamagedRow) return [error.message]
    throw error
  }
}
