import { paced } from '../../after.ts'
import type { Clock } from '../../clock.ts'
import { ApiError } from '../../errors.ts'
import { Failure, isDuplicate, UnknownOutcome } from '../faults.ts'
import { assertion, matched } from './assertion.ts'
import type { Statement } from './literal.ts'
import type { Pool } from './pool.ts'
import { persist } from './retry.ts'

/** Longer than wait_timeout: meanwhile the server closes a silent connection that still holds its transaction. */
const resolveMilliseconds = 20_000

/** Seconds, by the database's clock, after which an outcome is no longer needed. */
const keptSeconds = 3600
const purgedAtOnce = 1000

/**
 * The statement by which a transaction records `id`, the 16 bytes of a UUID, as committed. Where the node takes no writes it
 * fails, though the account may write there, and the server runs nothing that follows: the id is NULL then.
 * @param writing the condition, in SQL (`Connection.writing`)
 * @param matching how many rows the statement before it must have matched: elsewhere its assertion fails
 */
export function recordOutcome(id: Buffer, writing: string, matching?: number): Statement {
  const committed = matching === undefined ? '1' : assertion(matched('?'))
  return {
    sql: `INSERT INTO outcomes (id, committed, at) VALUES (IF(${writing}, ?, NULL), ${committed}, UNIX_TIMESTAMP())`,
    values: matching === undefined ? [id] : [id, matching],
  }
}

/** 1048: whether recordOutcome failed for that. */
export const isUnrecorded = (error: unknown): error is Failure => error instanceof Failure && error.number === 1048

/**
 * Finds out whether a transaction whose COMMIT got no answer was committed. Each transaction writes an id of its own as
 * its last row. The question is asked by inserting the same id: if that succeeds, the old transaction can never commit,
 * wherever it may still be alive, because one of two equal keys loses (a lock on one server, certification in a
 * cluster). If the id is taken, its row tells whether the transaction or an earlier question wrote it.
 */
export class Outcomes {
  readonly #pool: Pool
  readonly #clock: Clock

  constructor(pool: Pool, clock: Clock) {
    this.#pool = pool
    this.#clock = clock
  }

  /** Whether the transaction of `id` was committed; after `false` it never will be. Throws UnknownOutcome. */
  async committed(id: Buffer): Promise<boolean> {
    try {
      return await persist(this.#clock, resolveMilliseconds, () => this.#claim(id))
    } catch (error) {
      throw error instanceof ApiError ? new UnknownOutcome(error) : error
    }
  }

  async #claim(id: Buffer): Promise<boolean> {
    return this.#pool.use(async (connection) => {
      await connection.requireWriter()
      try {
        await connection.run('INSERT INTO outcomes (id, committed, at) VALUES (?, 0, UNIX_TIMESTAMP())', [id])
        return false
      } catch (error) {
        if (!isDuplicate(error)) throw error
      }
      const [row] = await connection.rows('SELECT committed FROM outcomes WHERE id = ?', [id])
      return row?.[0] === 1
    })
  }

  /** Removes old ids, in portions. @param signal ends it after a portion */
  async purge(signal?: AbortSignal): Promise<void> {
    const sql = `DELETE FROM outcomes WHERE at < UNIX_TIMESTAMP() - ${keptSeconds} LIMIT ${purgedAtOnce}`
    const removeSome = () => this.#pool.use((connection) => connection.run(sql))
    while ((await paced(this.#clock, removeSome)) === purgedAtOnce) if (signal?.aborted) return
  }
}
