import type { Claim } from '../../../engine.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Released } from './deps.ts'
import type { Progress } from './runs.ts'
import type { TidyOrder } from './settings.ts'
import type { Cursor, TidyRun } from './tables.ts'

/** Where a run is. */
export interface Place {
  /** Uuid of the mount. */
  readonly mount: string
  readonly run: TidyRun
  readonly claim: Claim
  /** Null at the beginning of the step. */
  readonly cursor: Cursor | null
  /** Certificates that the step has looked at, of how many. */
  readonly checked: number
  readonly total: number
  readonly signal: AbortSignal
  /** What has left the segments in this run, by whose entries they were: once for all pages, since it reads every segment. */
  readonly left: Map<string, Left>
}

/** With the moment that was asked for. */
export interface Left {
  readonly released: Released
  readonly end: number
}

/** @returns what the portion has done, and whether the step has come to its end */
export type Work = (tx: Transaction) => Promise<Progress & { readonly done: boolean }>

/** One portion of a step: finds out what is to be done, and answers what does it in a transaction. */
export type Part = (place: Place) => Promise<Work>

/** A step that is done once it was looked at, and changes nothing in the run's transaction. */
export const wholly =
  (step: (place: Place) => Promise<Progress>): Part =>
  async (place) => {
    const progress = await step(place)
    return async () => ({ ...progress, done: true })
  }

/** A transaction of so many rows holds up nobody. */
const mostAtOnce = 200

/** Certificates of one portion: one where there is a pause after each. */
export const portionOf = ({ pauseDuration, pageSize }: TidyOrder): number =>
  pauseDuration > 0 ? 1 : Math.min(pageSize, mostAtOnce)

/**
 * The last moment at which something must have ended to be removed `now`: NotAfter + buffer < now. Never a moment that has not
 * passed, whatever the buffer is.
 * @param now milliseconds @param bufferSeconds of the order
 */
export const lastEnd = (now: number, bufferSeconds: number): number => now - Math.max(0, bufferSeconds) * 1000 - 1
