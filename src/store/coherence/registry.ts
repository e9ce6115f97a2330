import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Pool } from '../pool/pool.ts'
import { persist } from '../pool/retry.ts'
import type { Stored } from '../table.ts'

/** What a poll sees in one statement: the sum of all versions, and this worker's own registration. */
export interface Sight {
  readonly sum: string
  readonly registered: boolean
}

/** What a writer waits for. */
export interface Pending {
  readonly registration: string
  readonly bucket: number
  readonly v: number
  readonly acknowledged: number
}

const deadlineMilliseconds = 5000
const places = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

/**
 * The tables `versions`, `registrations` and `acks`. All reads are causal; every change is one statement, or harmless
 * when only its first half took place: a registration goes before its acknowledgements.
 */
export class Registry {
  readonly #pool: Pool
  readonly #clock: Clock

  constructor(pool: Pool, clock: Clock) {
    this.#pool = pool
    this.#clock = clock
  }

  async look(registration: string): Promise<Sight> {
    const sql = `SELECT (SELECT SUM(v) FROM versions), (SELECT condemned FROM registrations WHERE id = ?)`
    const [row] = await this.#rows(sql, [registration])
    return { sum: String(row?.[0]), registered: row?.[1] === 0 }
  }

  async versions(): Promise<(readonly [bucket: number, v: number])[]> {
    const rows = await this.#rows('SELECT bucket, v FROM versions')
    return rows.map(([bucket, v]) => [Number(bucket), Number(v)] as const)
  }

  async acknowledge(registration: string, versions: readonly (readonly [bucket: number, v: number])[]): Promise<void> {
    const rows = versions.map(() => '(?, ?, ?)').join(', ')
    const values = versions.flatMap(([bucket, v]): Stored[] => [registration, bucket, v])
    const sql = `INSERT INTO acks (registration, bucket, v) VALUES ${rows}
      ON DUPLICATE KEY UPDATE v = GREATEST(v, VALUES(v))`
    await this.#run(sql, values)
  }

  /** Registers under a new name; returns after the commit. */
  register(incarnation: string): Promise<string> {
    return persist(this.#clock, deadlineMilliseconds, async () => {
      const registration = randomUUID()
      await this.#run('INSERT INTO registrations (id, incarnation) VALUES (?, ?)', [registration, incarnation])
      return registration
    })
  }

  /** Every registration, condemned ones too, with what it has acknowledged of these buckets. */
  async pending(buckets: readonly number[]): Promise<Pending[]> {
    const rows = await this.#rows(
      `SELECT r.id, b.bucket, b.v, a.v FROM registrations r CROSS JOIN versions b
        LEFT JOIN acks a ON a.registration = r.id AND a.bucket = b.bucket WHERE b.bucket IN (${places(buckets)})`,
      buckets,
    )
    return rows.map(([registration, bucket, v, acknowledged]) => ({
      registration: String(registration),
      bucket: Number(bucket),
      v: Number(v),
      acknowledged: Number(acknowledged ?? -1),
    }))
  }

  async condemn(registrations: readonly string[]): Promise<void> {
    await this.#run(
      `UPDATE registrations SET condemned = 1 WHERE condemned = 0 AND id IN (${places(registrations)})`,
      registrations,
    )
  }

  async condemned(): Promise<string[]> {
    const rows = await this.#rows('SELECT id FROM registrations WHERE condemned = 1')
    return rows.map(([id]) => String(id))
  }

  /** Acknowledgements that a worker wrote after its registration had been removed. */
  async sweep(): Promise<void> {
    await this.#run('DELETE a FROM acks a LEFT JOIN registrations r ON r.id = a.registration WHERE r.id IS NULL', [])
  }

  async remove(registrations: readonly string[]): Promise<void> {
    if (registrations.length === 0) return
    await this.#run(`DELETE FROM registrations WHERE id IN (${places(registrations)})`, registrations)
    await this.#run(`DELETE FROM acks WHERE registration IN (${places(registrations)})`, registrations)
  }

  /** Registrations of processes that have ended: they hold no cache, so nothing needs to be waited for. */
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
    return this.#pool.use((connection) => connection.rows(sql, values))
  }

  #run(sql: string, values: readonly Stored[]): Promise<number> {
    return this.#pool.use((connection) => connection.run(sql, values))
  }
}
