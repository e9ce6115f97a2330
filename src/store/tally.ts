import { randomInt } from 'node:crypto'
import type { Session } from './pool/session.ts'

/** A count lies in so many rows, one of which a transaction takes by chance: two at once seldom wait for each other. */
const stripes = 64

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
export async function totalOf(q: Session, name: string): Promise<number> {
  const [row] = await q.rows('SELECT SUM(n) FROM tallies WHERE name = ?', [name])
  return Number(row?.[0] ?? 0)
}
