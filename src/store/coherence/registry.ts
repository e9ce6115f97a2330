import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { places } from '../places.ts'
import type { Connection } from '../pool/connection.ts'
import type { Pool } from '../pool/pool.ts'
import { persist } from '../pool/retry.ts'
import type { Stored } from '../table.ts'
import { type Look, lookAt, lookOf } from './look.ts'

export interface Condemned {
  readonly registration: string
  readonly leaseMilliseconds: number
}

const deadlineMilliseconds = 5000
/** Registrations whose acknowledgements one statement finds. */
const sweptAtOnce = 64

/**
 * The tables `registrations` and `acks`. All reads are causal. Every change is one statement, or harmless when it stops
 * half-way: a registration goes before its acknowledgements.
 */
export class Registry {
  readonly #pool: Pool
  readonly #clock: Clock

  constructor(pool: Pool, clock: Clock) {
    this.#pool = pool
    this.#clock = clock
  }

  /**
   * Registers under a new name; returns after the commit.
   * @param sharedLog the log that the worker reads before each use of its cache, if there is one
   */
  register(incarnation: string, leaseMilliseconds: number, sharedLog?: string): Promise<string> {
    return persist(this.#clock, deadlineMilliseconds, async () => {
      const registration = randomUUID()
      const sql = 'INSERT INTO registrations (id, incarnation, lease_milliseconds, shared_log) VALUES (?, ?, ?, ?)'
      await this.#run(sql, [registration, incarnation, leaseMilliseconds, sharedLog ?? null])
      return registration
    })
  }

  /** The look of a waiting writer; throws on a node that takes no writes. */
  look(groups: readonly number[]): Promise<Look> {
    return this.#pool.use(async (connection) => lookOf(await connection.ask(lookAt(groups), groups)))
  }

  async condemn(registrations: readonly string[]): Promise<void> {
    await this.#run(
      `UPDATE registrations SET condemned = 1 WHERE condemned = 0 AND id IN (${places(registrations)})`,
      registrations,
    )
  }

  async condemned(): Promise<Condemned[]> {
    const rows = await this.#rows('SELECT id, lease_milliseconds FROM registrations WHERE condemned = 1')
    return rows.map(([id, lease]) => ({ registration: String(id), leaseMilliseconds: Number(lease) }))
  }

  /** Removes acknowledgements that a worker wrote after its registration had been removed. */
  async sweep(): Promise<void> {
    const sql = `SELECT a.registration FROM (SELECT DISTINCT registration FROM acks) a
      LEFT JOIN registrations r ON r.id = a.registration WHERE r.id IS NULL LIMIT ${sweptAtOnce}`
    for (;;) {
      const stray = (await this.#rows(sql)).map(([registration]) => String(registration))
      if (stray.length > 0) await this.#removeAcks(stray)
      if (stray.length < sweptAtOnce) return
    }
  }

  async remove(registrations: readonly string[]): Promise<void> {
    if (registrations.length === 0) return
    await this.#run(`DELETE FROM registrations WHERE id IN (${places(registrations)})`, registrations)
    await this.#removeAcks(registrations)
  }

  /** One registration at a time: each has one row for every group. */
  async #removeAcks(registrations: readonly string[]): Promise<void> {
    for (const registration of registrations) await this.#run('DELETE FROM acks WHERE registration = ?', [registration])
  }

  /**
   * Deletes the registrations of processes that have ended: they hold no cache, so writers need not wait for them.
   */
  async forget(incarnations: readonly string[]): Promise<void> {
    if (incarnations.length === 0) return
    const sql = `SELECT id FROM registrations WHERE incarnation IN (${places(incarnations)})`
    await persist(this.#clock, deadlineMilliseconds, async () => {
      const rows = await this.#rows(sql, incarnations)
      await this.remove(rows.map(([id]) => String(id)))
    })
  }

  /** Processes that are registered and not condemned. */
  async incarnations(): Promise<string[]> {
    const rows = await this.#rows('SELECT DISTINCT incarnation FROM registrations WHERE condemned = 0')
    return rows.map(([incarnation]) => String(incarnation))
  }

  #rows(sql: string, values: readonly Stored[] = []): Promise<Stored[][]> {
    return this.#onWriter((connection) => connection.rows(sql, values))
  }

  #run(sql: string, values: readonly Stored[]): Promise<number> {
    return this.#onWriter((connection) => connection.run(sql, values))
  }

  /** A privileged account could write even to a read-only copy, where no other worker would see the change. */
  #onWriter<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#pool.use(async (connection) => {
      await connection.requireWriter()
      return work(connection)
    })
  }
}
