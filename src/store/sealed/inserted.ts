/** The one row that came out for one that went in. */
export function only<R>(rows: readonly R[]): R {
  const [row] = rows
  if (row === undefined) throw new Error('one row in, none out')
  return row
}
