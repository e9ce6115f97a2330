import { randomInt } from 'node:crypto'
import type { Statement } from './pool/literal.ts'
import type { Stored } from './table.ts'

/** A count lies in so many rows, one of which a transaction takes by chance: two at once seldom wait for each other. */
const stripes = 64

/** Names go into statements as they are. */
export const isTallyName = (name: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(name)

/** Removes the counts of all names that begin with `prefix`. */
export const discarding = (prefix: string): Statement => ({
  sql: 'DELETE FROM tallies WHERE name >= ? AND name < ?',
  // A tilde comes after every character of a name.
  values: [prefix, `${prefix}~`],
})

/** Statements that add to counts. The names are text of ours, never anything from a request. */
export const additions = (tallies: ReadonlyMap<string, number>): string[] =>
  [...tallies]
    .filter(([, delta]) => delta !== 0)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([name, delta]) => `INSERT INTO tallies (name, stripe, n) VALUES ('${name}', ${randomInt(stripes)}, ${delta})
      ON DUPLICATE KEY UPDATE n = n + VALUES(n)`,
    )

/** What has been added up under a name. */
export async function totalOf(
  q: { rows(sql: string, values: readonly Stored[]): Promise<Stored[][]> },
  name: string,
): Promise<number> {
  const [row] = await q.rows('SELECT SUM(n) FROM tallies WHERE name = ?', [name])
  return Number(row?.[0] ?? 0)
}
