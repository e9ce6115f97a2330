import type { Place } from '../../keys/support.ts'

type Value = string | number

/** Saves rows of a table. @returns a function that puts them back in place of the rows there by then */
export async function saved(
  place: Place,
  table: string,
  where: string,
  ...values: Value[]
): Promise<() => Promise<void>> {
  const rows = await place.sql(`SELECT * FROM ${table} ${where}`, values)
  return async () => {
    await place.sql(`DELETE FROM ${table} ${where}`, values)
    for (const row of rows) {
      const names = Object.keys(row)
      const columns = names.map((name) => `\`${name}\``).join()
      const places = names.map(() => '?').join()
      await place.sql(
        `INSERT INTO ${table} (${columns}) VALUES (${places})`,
        names.map((name) => row[name] as string),
      )
    }
  }
}
