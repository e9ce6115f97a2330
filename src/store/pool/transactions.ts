import { randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { increments, type Versions, versionsOf } from '../coherence/versions.ts'
import { Conflict, isRefusedCommit } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
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
        await connection.requireWriter()
        const session = new Session(connection, false)
        return work(session).finally(() => session.end())
      }),
    )
  }

  /** Statements that all see one moment. */
  snapshot<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use(async (connection) => {
        const session = new Session(connection, true)
        const result = await orRollBack(connection, async () => {
          await connection.beginSnapshot()
          return work(session)
        }).finally(() => session.end())
        await connection.command('COMMIT')
        return result
      }),
    )
  }

  /** Commits what `work` writes, once; answers its result and the new versions of what it touched. */
  write<T>(
    work: (tx: Transaction) => Promise<T>,
    milliseconds = deadlineMilliseconds,
  ): Promise<{ result: T; versions: Versions }> {
    return persist(this.#clock, milliseconds, async () => {
      const written = await this.#pool.use((connection) => this.#attempt(connection, work))
      if (written.doubt && !(await this.#outcomes.committed(written.doubt.id))) throw new Conflict()
      return written
    })
  }

  async #attempt<T>(connection: Connection, work: (tx: Transaction) => Promise<T>) {
    const tx = new WriteSession(connection)
    return orRollBack(connection, async () => {
      await connection.beginChange()
      const result = await work(tx)
      const id = randomBytes(16)
      // The versions are the last locks of every transaction, and tallies the last before them.
      const last = [recordOutcome(id), ...additions(tx.tallies), ...increments(tx.leaves)]
      const rows = tx.wrote ? await tx.script(last) : []
      const sure = await commit(connection)
      return { result, versions: versionsOf(rows), doubt: tx.wrote && !sure ? { id } : undefined }
    }).finally(() => tx.end())
  }
}

/** Answers whether it is sure that the COMMIT took place; throws when it surely did not. */
async function commit(connection: Connection): Promise<boolean> {
  try {
    await connection.command('COMMIT')
    return true
  } catch (error) {
    if (isRefusedCommit(error)) throw error
    connection.destroy()
    return false
  }
}

/** A connection goes back to the pool without an open transaction, or broken. */
async function orRollBack<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!connection.broken) await connection.command('ROLLBACK').catch(() => connection.destroy())
    throw error
  }
}
