import { randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { increments, type Versions, versionsOf } from '../coherence/versions.ts'
import { Conflict } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Stored } from '../table.ts'
import { additions } from '../tally.ts'
import type { Connection } from './connection.ts'
import { type Outcomes, recordOutcome } from './outcomes.ts'
import type { Pool } from './pool.ts'
import { persist } from './retry.ts'
import { Session, WriteSession } from './session.ts'

const deadlineMilliseconds = 10_000

/** Runs work on connections of the pool, whole again after a conflict or a lost connection, until a deadline. */
export class Transactions {
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #outcomes: Outcomes

  constructor(pool: Pool, clock: Clock, outcomes: Outcomes) {
    this.#pool = pool
    this.#clock = clock
    this.#outcomes = outcomes
  }

  /** Single statements, each causal, each of its own moment. */
  read<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use(async (connection) => {
        const session = new Session(connection, 'single', false)
        return work(session).finally(() => session.end())
      }),
    )
  }

  /**
   * One statement, causal and of one moment, which asks itself whether the node takes writes: little work on few rows.
   * @param select the select list and what follows; it reads a table
   */
  ask(select: string, values: readonly Stored[]): Promise<Stored[][]> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use((connection) => connection.ask(select, values)),
    )
  }

  /** Statements that all see one moment. */
  snapshot<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use(async (connection) => {
        const session = new Session(connection, 'snapshot', true)
        const result = await orRollBack(connection, session, () => work(session))
        // Nothing depends on its answer; what comes next on this connection waits behind it.
        if (session.opened) connection.command('COMMIT').catch(() => connection.destroy())
        return result
      }),
    )
  }

  /**
   * Commits what `work` writes, once; answers its result and the new versions of what it touched. They are undefined when the
   * answer to the COMMIT was lost with them.
   */
  write<T>(
    work: (tx: Transaction) => Promise<T>,
    milliseconds = deadlineMilliseconds,
  ): Promise<{ result: T; versions: Versions | undefined }> {
    return persist(this.#clock, milliseconds, async () => {
      const written = await this.#pool.use((connection) => this.#attempt(connection, work))
      if (written.doubt && !(await this.#outcomes.committed(written.doubt.id))) throw new Conflict()
      return written
    })
  }

  async #attempt<T>(connection: Connection, work: (tx: Transaction) => Promise<T>) {
    const tx = new WriteSession(connection, 'change', true)
    return orRollBack(connection, tx, async () => {
      const result = await work(tx)
      if (!tx.wrote) {
        if (tx.opened) await connection.command('COMMIT')
        return { result, versions: versionsOf([]), doubt: undefined }
      }
      const id = randomBytes(16)
      // The versions are the last locks of every transaction, and tallies the last before them.
      const last = [recordOutcome(id), ...additions(tx.tallies), ...increments(tx.leaves)]
      const { answers, sure } = await tx.commit(last)
      const known = tx.leaves.length === 0 || answers.length > 0
      const rows = answers.findLast((answer) => answer.rows.length > 0)?.rows ?? []
      return { result, versions: known ? versionsOf(rows) : undefined, doubt: sure ? undefined : { id } }
    })
  }
}

/** A connection goes back to the pool without an open transaction, or broken; nothing of the session is under way then. */
async function orRollBack<T>(connection: Connection, session: Session, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await session.end()
    const open = session.opened && !connection.broken
    if (open) await connection.command('ROLLBACK').catch(() => connection.destroy())
    throw error
  } finally {
    await session.end()
  }
}
