import { randomUUIDv7 } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { increments, type Versions } from '../coherence/increments.ts'
import { type Look, lookOf, lookSql } from '../coherence/look.ts'
import { Conflict } from '../faults.ts'
import type { Reader, Transaction } from '../reader.ts'
import type { Stored } from '../table.ts'
import { additions } from '../tally.ts'
import type { Connection } from './connection.ts'
import { parameterised } from './literal.ts'
import { type Outcomes, recordOutcome } from './outcomes.ts'
import type { Pool } from './pool.ts'
import { persist } from './retry.ts'
import { Session, WriteSession } from './session.ts'

const deadlineMilliseconds = 10_000

/** A transaction that has committed. */
interface Written<T> {
  readonly result: T
  /** The versions of the leaves it touched; undefined when they were lost with the answer to the COMMIT. */
  readonly versions: Versions | undefined
  /** A look that followed the COMMIT, if anything was touched and there was one. */
  readonly look: Look | undefined
  /** Fills caches; call it when this process has learned the versions. */
  readonly fill: () => void
  readonly afterwards: Afterwards
}

/**
 * Runs work on connections of the pool, again from the start after a conflict or a lost connection, until a deadline.
 */
export class Transactions {
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #outcomes: Outcomes

  constructor(pool: Pool, clock: Clock, outcomes: Outcomes) {
    this.#pool = pool
    this.#clock = clock
    this.#outcomes = outcomes
  }

  /** Single statements, each causal and a snapshot of its own. */
  read<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use(async (connection) => {
        const session = new Session(connection, 'single', false)
        return work(session).finally(() => session.end())
      }),
    )
  }

  /**
   * One statement, causal and a snapshot, which itself asks whether the node takes writes; it must be cheap.
   * @param selects select lists and FROM clauses, of the same columns and of one row each; each reads a table
   * @returns their rows
   */
  askAll(selects: readonly string[], values: readonly Stored[]): Promise<Stored[][]> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use((connection) => connection.askAll(selects, values)),
    )
  }

  /** Statements that all see one moment. */
  snapshot<T>(work: (q: Reader) => Promise<T>): Promise<T> {
    return persist(this.#clock, deadlineMilliseconds, () =>
      this.#pool.use(async (connection) => {
        const session = new Session(connection, 'snapshot', true)
        const result = await orRollBack(connection, session, () => work(session))
        // The answer does not matter; the next statement on this connection waits behind it.
        if (session.opened) connection.command('COMMIT').catch(() => connection.destroy())
        return result
      }),
    )
  }

  /** Commits what `work` writes, once. @param blind as for `persist` */
  write<T>(
    work: (tx: Transaction) => Promise<T>,
    milliseconds = deadlineMilliseconds,
    blind = false,
  ): Promise<Written<T>> {
    const attempt = async () => {
      const { doubt, ...written } = await this.#pool.use((connection) => this.#attempt(connection, work))
      if (doubt && !(await this.#outcomes.committed(doubt.id))) throw new Conflict()
      return written
    }
    return persist(this.#clock, milliseconds, attempt, blind)
  }

  async #attempt<T>(connection: Connection, work: (tx: Transaction) => Promise<T>) {
    const tx = new WriteSession(connection, 'change', true)
    return orRollBack(connection, tx, async () => {
      const result = await work(tx)
      if (!tx.wrote) {
        if (tx.opened) await connection.command('COMMIT')
        const { afterwards } = tx
        return {
          result,
          versions: { leaves: [], groups: [] },
          look: undefined,
          doubt: undefined,
          fill: () => undefined,
          afterwards,
        }
      }
      // In the order of time: the server puts such rows one after the other.
      const id = Buffer.from(randomUUIDv7().replaceAll('-', ''), 'hex')
      // The versions are the last locks of every transaction, and tallies the last before them.
      const versioning = increments(tx.leaves, tx.assumed, connection.returning)
      const last = [...additions(tx.tallies).map(parameterised), ...versioning.statements]
      const record = (matching?: number) => parameterised(recordOutcome(id, connection.writing, matching))
      const next = tx.leaves.length > 0 ? lookSql : undefined
      const { given, sure, rows: registered } = await tx.commit(record, last, next)
      const look = registered && lookOf(registered)
      const known = given !== undefined || tx.leaves.length === 0
      const versions = known ? versioning.read(given ?? []) : undefined
      const fill = (): void => tx.tellVersions(versions?.leaves ?? [])
      return { result, versions, look, fill, doubt: sure ? undefined : { id }, afterwards: tx.afterwards }
    })
  }
}

/** Work for after the COMMIT, given by `onCommit`. */
type Afterwards = readonly (() => Promise<void>)[] | undefined

/**
 * The connection goes back to the pool without an open transaction, or broken; nothing of the session is under way
 * then.
 */
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
