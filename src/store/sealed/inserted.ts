/** The one row of a list that must have exactly one. */
export function only<R>(rows: readonly R[]): R {
  const [row] = rows
  if (row === undefined) throw new Error('one row in, none out')
  return row
}
