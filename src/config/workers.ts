import { availableParallelism } from 'node:os'
import type { Config } from './schema.ts'

/** How many worker processes this node runs: `auto` is one for each core. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 'auto' ? availableParallelism() : workers
