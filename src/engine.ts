import type { MaybePromise, Mount, Routes } from './route.ts'

/** A thing done in the background by whoever holds its lease. `fence` is compared inside every transaction of the job. */
export interface Job {
  readonly name: string
  readonly everySeconds: number
  run(signal: AbortSignal, fence: bigint): Promise<void>
}

/** What a secrets engine is to the rest of the server. `context` is handed to every route's `run`. */
export interface Engine<Context = unknown> {
  readonly type: string
  readonly context: Context
  readonly routes: Routes<Context>
  readonly jobs?: readonly Job[]
  /** Whether anything was ever written below this mount (a pristine default mount may be enabled once more). */
  pristine?(mount: Mount): MaybePromise<boolean>
  onMount?(mount: Mount): Promise<void>
  /** Removes all data of the mount. */
  onUnmount?(mount: Mount): Promise<void>
  /**
   * Takes back what a lease was given for. Called again when the outcome was unknown: what is gone already is no error.
   * @param payload as the engine registered it
   */
  revokeLease?(mount: Mount, payload: Readonly<Record<string, unknown>>): Promise<void>
  /** sys/plugins/reload/backend. */
  reload?(mount: Mount): Promise<void>
}
