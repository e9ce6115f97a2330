import type { Claim } from '../../../job.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Released } from './deps.ts'
import type { Progress } from './runs.ts'
import type { TidyOrder } from './settings.ts'
import type { Cursor, TidyRun } from './tables.ts'

/** The position of a run. */
export interface Place {
  /** Uuid of the mount. */
  readonly mount: string
  readonly run: TidyRun
  readonly claim: Claim
  /** Null at the beginning of the step. */
  readonly cursor: Cursor | null
  /** Certificates that the step has checked, and their total. */
  readonly checked: number
  readonly total: number
  readonly signal: AbortSignal
  /**
   * The entries that have left the segments in this run, by CRL issuer and site: read once for all pages, since it
   * reads every segment.
   */
  readonly left: Map<string, Left>
}

/** Released entries, and the end up to which they were requested. */
export interface Left {
  readonly released: Released
  readonly end: number
}

/** @returns the progress of the portion, and whether the step is finished */
export type Work = (tx: Transaction) => Promise<Progress & { readonly done: boolean }>

/** One portion of a step: finds out what is to be done, and returns the work for a transaction. */
export type Part = (place: Place) => Promise<Work>

/** A step without portions, which changes nothing in the run's transaction. */
export const wholly =
  (step: (place: Place) => Promise<Progress>): Part =>
  async (place) => {
    const progress = await step(place)
    return async () => ({ ...progress, done: true })
  }

/** A transaction of this many rows holds up no other work. */
const mostAtOnce = 200

/** Certificates of one portion: one if there is a pause after each. */
export const portionOf = ({ pauseDuration, pageSize }: TidyOrder): number =>
  pauseDuration > 0 ? 1 : Math.min(pageSize, mostAtOnce)

/**
 * The latest end at which something is removed `now`: NotAfter + buffer < now. Never in the future, even for a negative
 * buffer.
 * @param now milliseconds
 * @param bufferSeconds of the order
 */
export const lastEnd = (now: number, bufferSeconds: number): number => now - Math.max(0, bufferSeconds) * 1000 - 1
