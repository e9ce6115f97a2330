import type { Fold } from './fold.ts'
import type { Data, MaybePromise, Mount, Routes } from './route.ts'

/** Background work of the worker that holds its lease. `fence` is compared inside every transaction of the job. */
export interface Job {
  readonly name: string
  readonly everySeconds: number
  run(signal: AbortSignal, fence: bigint): Promise<void>
}

/** The right to do a job's work: its name and the fence of its lease, compared in each transaction (`tx.fence`). */
export interface Claim {
  readonly job: string
  readonly fence: bigint
}

/** A secrets engine as the rest of the server sees it. `context` is passed to every route's `run`. */
export interface Engine<Context = unknown> {
  readonly type: string
  readonly context: Context
  readonly routes: Routes<Context>
  /**
   * The names in its paths that have several spellings, by the beginning of a route's path that ends in the name
   * (`policies/acl/:name*`). Routing, policies and audit see the path with such a name folded.
   */
  readonly folds?: Readonly<Record<string, Fold>>
  readonly jobs?: readonly Job[]
  /** Whether nothing was ever written below this mount: a pristine default mount may be enabled again. */
  pristine?(mount: Mount): MaybePromise<boolean>
  onMount?(mount: Mount): Promise<void>
  /**
   * Removes a bounded portion of the data of a removed mount, which no request reaches any more; a job calls it until
   * nothing is left.
   * @returns whether there was anything
   */
  removeSome?(mount: Mount, claim: Claim): Promise<boolean>
  /** Frees this worker's memory for mounts that are not among these. @param uuids of all mounts */
  retain?(uuids: ReadonlySet<string>): void
  /**
   * Revokes the object of a lease. Called again when the outcome was unknown, so absence is not an error.
   * @param payload as the engine registered it
   */
  revokeLease?(mount: Mount, payload: Readonly<Record<string, unknown>>): Promise<void>
  /**
   * The uses of a managed key; a used key is not deleted.
   * @param managedKey uuid @param mounts of this engine @param most the most uses to return
   * @returns paths, with a version if there are several
   */
  managedKeyUses?(managedKey: string, mounts: readonly Mount[], most: number): Promise<readonly string[]>
  /** Numbers that warn an operator of trouble ahead; sys/health shows them to anybody who asks for details. */
  health?(): Promise<Data>
  /** Does what sys/plugins/reload/backend asks for. */
  reload?(mount: Mount): Promise<void>
}
