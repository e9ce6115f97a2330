import { DuplicateRow, isDuplicate } from '../faults.ts'

/** Names the table when a unique key is taken. */
export async function inserted(table: string, statement: Promise<number>): Promise<number> {
  try {
    return await statement
  } catch (error) {
    throw isDuplicate(error) ? new DuplicateRow(table, error) : error
  }
}

/** The one row that came out for one that went in. */
export function only<R>(rows: readonly R[]): R {
  const [row] = rows
  if (row === undefined) throw new Error('one row in, none out')
  return row
}
