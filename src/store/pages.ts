import type { Database } from './database.ts'
import type { Page, Reading } from './sealed/access.ts'
import type { Row, Table, Where } from './table.ts'

type Cursor<T extends Table> = NonNullable<Page<T>['after']>

/**
 * All rows that match, a page of `limit` at a time in the order of `by`, each page a read of its own: rows may come and
 * go meanwhile. It ends at an empty page, since rows that only seem to match are left out of a page.
 */
export async function* pages<T extends Table>(
  database: Database,
  rows: Reading<T>,
  where: Where<T>,
  { after, ...page }: Page<T>,
): AsyncGenerator<Row<T>[], void> {
  for (let cursor = after; ; ) {
    const at = cursor === undefined ? page : { ...page, after: cursor }
    const found = await database.read((q) => rows.list(q, where, at))
    const last = found.at(-1)
    if (last === undefined) return
    yield found
    cursor = cursorOf(last, page.by)
  }
}

const cursorOf = <T extends Table>(row: Row<T>, by: Page<T>['by']): Cursor<T> => {
  const keys = [by].flat().map((property) => (row as Readonly<Record<string, unknown>>)[property])
  return (keys.length === 1 ? keys[0] : keys) as Cursor<T>
}
