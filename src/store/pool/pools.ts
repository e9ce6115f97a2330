import type { Clock } from '../../clock.ts'
import type { Tls } from './connection.ts'
import { Pool } from './pool.ts'
import type { Target } from './target.ts'

const connectMilliseconds = 3000
const statementMilliseconds = 8000
/** A slower poll is worth nothing: another connection, perhaps another node, is tried. */
const pollMilliseconds = 2000

/** The most callers that may wait, per connection of a pool; the next one is refused. */
const queuePerConnection = 32
const shortestQueue = 256

/**
 * Lanes of reads. `public` is for reads that callers without credentials can cause: however many they are, requests of
 * authenticated callers find connections.
 */
export type ReadLane = 'requests' | 'public'

/** The size of the public lane, as a share of the connections for requests and in addition to them. */
const publicShare = 1 / 4

/** The lanes to the database; none of them ever queues behind another. */
export class Pools implements AsyncDisposable {
  readonly requests: Pool
  /** Reads for callers without credentials. */
  readonly public: Pool
  /** Counters that a running request draws on. */
  readonly counters: Pool
  /** Registrations, the looks of waiting writers, and questions about unknown outcomes. */
  readonly control: Pool
  readonly polls: Pool

  constructor(options: { targets: readonly Target[]; size: number; tls: Tls | undefined; clock: Clock }) {
    const { targets, size, tls, clock } = options
    const pool = (limit: number, statementMilliseconds: number): Pool => {
      const queueLimit = Math.max(shortestQueue, queuePerConnection * limit)
      return new Pool({
        targets,
        limit,
        queueLimit,
        tls,
        timeouts: { connectMilliseconds, statementMilliseconds },
        clock,
      })
    }
    this.requests = pool(size, statementMilliseconds)
    this.public = pool(Math.ceil(size * publicShare), statementMilliseconds)
    this.counters = pool(1, statementMilliseconds)
    this.control = pool(2, pollMilliseconds)
    this.polls = pool(1, pollMilliseconds)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [this.requests, this.public, this.counters, this.control, this.polls]
    for (const pool of all) await pool[Symbol.asyncDispose]()
  }
}
