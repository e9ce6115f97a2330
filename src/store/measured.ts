import type { Timing } from '../metrics/timing.ts'
import type { Counter, Metrics } from '../metrics.ts'

/** Metrics of the database. Names with `vault.` are the reference's, for its storage. */
export interface Measured {
  readonly get: Timing
  readonly put: Timing
  readonly settle: Timing
  readonly polls: Counter
  readonly failedPolls: Counter
  readonly hits: Counter
  readonly misses: Counter
}

/** Declares the metrics of the database. */
export const measuredIn = (metrics: Metrics): Measured => ({
  get: metrics.timing('vault.barrier.get', 'Reads from the database, each with all its statements.'),
  put: metrics.timing('vault.barrier.put', 'Transactions, repetitions included, to the end of their COMMIT.'),
  settle: metrics.timing('strongroom.coherence.settle', 'From a COMMIT until no worker caches a replaced value.'),
  polls: metrics.counter('strongroom.coherence.polls', 'Polls of the versions of cached values.'),
  failedPolls: metrics.counter('strongroom.coherence.failed_polls', 'Polls that the database did not answer.'),
  hits: metrics.counter('vault.cache.hit', 'Look-ups that a coherent cache answered.'),
  misses: metrics.counter('vault.cache.miss', 'Look-ups that went to the database.'),
})
