import { randomInt } from 'node:crypto'
import type { Statement } from './pool/literal.ts'
import type { Stored } from './table.ts'

/** The rows of one count; a transaction adds to one at random, so that two at once seldom wait for each other. */
const stripes = 64
/** The row that is written to hold a count; never the random one. */
const heldStripe = stripes

/** Names go into statements unescaped. */
export const isTallyName = (name: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(name)

/** Removes the counts of all names that begin with `prefix`. */
export const discarding = (prefix: string): Statement => ({
  sql: 'DELETE FROM tallies WHERE name >= ? AND name < ?',
  // A tilde sorts after every character of a name.
  values: [prefix, `${prefix}~`],
})

/** Statements that add to counts. */
export const additions = (tallies: ReadonlyMap<string, number>): Statement[] =>
  [...tallies]
    .filter(([, delta]) => delta !== 0)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, delta]) => ({
      sql: 'INSERT INTO tallies (name, stripe, n) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n = n + ?',
      values: [name, randomInt(stripes), delta, delta],
    }))

/**
 * Locks a count until the transaction ends. The row is changed, not only read, so that a holder on another node of a
 * cluster conflicts; the change is taken back with the transaction's other additions.
 */
export const holding = (name: string): Statement => ({
  sql: 'INSERT INTO tallies (name, stripe, n) VALUES (?, ?, 1) ON DUPLICATE KEY UPDATE n = n + 1',
  values: [name, heldStripe],
})

/** The sum of all additions to a name. */
export async function totalOf(
  q: { rows(sql: string, values: readonly Stored[]): Promise<Stored[][]> },
  name: string,
): Promise<number> {
  const [row] = await q.rows('SELECT SUM(n) FROM tallies WHERE name = ?', [name])
  return Number(row?.[0] ?? 0)
}
