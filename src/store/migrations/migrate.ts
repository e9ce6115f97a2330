import type { Clock } from '../../clock.ts'
import { ApiError } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { Failure } from '../faults.ts'
import { type JobLease, takeLease } from '../lease.ts'
import type { Pool } from '../pool/pool.ts'
import { persist } from '../pool/retry.ts'
import { WriteSession } from '../pool/session.ts'
import type { Transactions } from '../pool/transactions.ts'
import { migrations } from './list.ts'
import type { Migration } from './migration.ts'

export interface SchemaStatus {
  readonly version: number
  readonly minReader: number
  /** The newest version this build knows. */
  readonly known: number
  /** `ahead`: newer than this build, which may still serve; `unreadable`: it may not. */
  readonly state: 'empty' | 'behind' | 'current' | 'ahead' | 'unreadable'
}

const leaseSeconds = 60
const statementMilliseconds = 30 * 60_000
const waitMilliseconds = 200

/** The tables needed before a lease can be taken. */
const groundwork = [
  `CREATE TABLE IF NOT EXISTS job_leases (name VARCHAR(128) NOT NULL, fence BIGINT NOT NULL, holder VARCHAR(64) NOT NULL,
    expires_at BIGINT NOT NULL, beats BIGINT NOT NULL, PRIMARY KEY (name))
    ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
  `CREATE TABLE IF NOT EXISTS outcomes (id BINARY(16) NOT NULL, committed TINYINT NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (id), KEY (at)) ENGINE=InnoDB`,
  `CREATE TABLE IF NOT EXISTS \`schema\` (id TINYINT NOT NULL, version INT NOT NULL, min_reader INT NOT NULL,
    PRIMARY KEY (id)) ENGINE=InnoDB`,
  'INSERT IGNORE INTO `schema` (id, version, min_reader) VALUES (1, 0, 0)',
]

/** Changes the schema, one process at a time. */
export class Migrator {
  readonly #pool: Pool
  readonly #transactions: Transactions
  readonly #holder: string
  readonly #log: Logger
  readonly #clock: Clock
  readonly #migrations: readonly Migration[]

  constructor(options: {
    pool: Pool
    transactions: Transactions
    holder: string
    log: Logger
    clock: Clock
    migrations?: readonly Migration[]
  }) {
    this.#pool = options.pool
    this.#transactions = options.transactions
    this.#holder = options.holder
    this.#log = options.log
    this.#clock = options.clock
    this.#migrations = options.migrations ?? migrations
  }

  async status(): Promise<SchemaStatus> {
    const known = this.#migrations.length
    const row = await persist(this.#clock, 10_000, () =>
      this.#pool.use(async (connection) => {
        try {
          return (await connection.rows('SELECT version, min_reader FROM `schema` WHERE id = 1'))[0]
        } catch (error) {
          if (error instanceof Failure && error.number === noSuchTable) return undefined
          throw error
        }
      }),
    )
    const version = Number(row?.[0] ?? 0)
    const minReader = Number(row?.[1] ?? 0)
    const state =
      version === 0
        ? 'empty'
        : minReader > known
          ? 'unreadable'
          : version < known
            ? 'behind'
            : version > known
              ? 'ahead'
              : 'current'
    return { version, minReader, known, state }
  }

  /** Throws ApiError 503 unless this build may serve on the schema. */
  async check(): Promise<void> {
    const { state, version, minReader, known } = await this.status()
    if (state === 'current' || state === 'ahead') return
    const reason =
      state === 'unreadable'
        ? `it needs a program that knows version ${minReader}; this one knows ${known}`
        : `this program needs version ${known}: run strongroom migrate`
    throw new ApiError(503, `the database's schema has version ${version}: ${reason}`)
  }

  /** Brings the schema to the newest version this build knows, or waits until another process has done so. */
  async migrate(): Promise<void> {
    if (await this.#done()) return
    await persist(this.#clock, 60_000, () =>
      this.#pool.use(async (connection) => {
        for (const statement of groundwork) await connection.command(statement)
      }),
    )
    for (let isTold = false; ; isTold = true) {
      const lease = await takeLease(this.#transactions, 'migrate', leaseSeconds, this.#holder)
      if (lease) {
        await this.#run(lease).finally(() => lease.release())
        return
      }
      if (!isTold) this.#log.warn('another process changes the schema, or has died meanwhile: waiting for it')
      await this.#clock.sleep(waitMilliseconds)
      if (await this.#done()) return
    }
  }

  async #done(): Promise<boolean> {
    const { state } = await this.status()
    if (state === 'unreadable') await this.check()
    return state === 'current' || state === 'ahead'
  }

  async #run(lease: JobLease): Promise<void> {
    const { version } = await this.status()
    for (const migration of this.#migrations.slice(version)) {
      this.#log.info({ migration: migration.number }, 'changing the schema')
      await migration.run({ statement: (sql) => this.#statement(lease, sql) })
      await this.#transactions.write(async (tx) => {
        await tx.fence('migrate', lease.fence)
        const sql = 'UPDATE `schema` SET version = ?, min_reader = GREATEST(min_reader, ?) WHERE id = 1 AND version = ?'
        await WriteSession.of(tx).run(sql, [migration.number, migration.minReader, migration.number - 1])
      })
    }
  }

  async #statement(lease: JobLease, sql: string): Promise<void> {
    const renewed = await takeLease(this.#transactions, 'migrate', leaseSeconds, this.#holder)
    if (renewed?.fence !== lease.fence) throw new Error('another process has taken over the migration')
    await persist(this.#clock, statementMilliseconds, async () => {
      try {
        await this.#pool.use((connection) => connection.command(sql, statementMilliseconds))
      } catch (error) {
        // MySQL has no ADD … IF NOT EXISTS: an interrupted run had already added it.
        if (!(error instanceof Failure && duplicates.includes(error.number))) throw error
      }
    })
  }
}

/** ER_NO_SUCH_TABLE */
const noSuchTable = 1146
/** ER_DUP_FIELDNAME, ER_DUP_KEYNAME */
const duplicates = [1060, 1061]
