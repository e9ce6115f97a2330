import type { Claim, Job } from './job.ts'
import type { Data, MaybePromise, Mount, Routes } from './route.ts'
import type { Reader, Transaction } from './store/reader.ts'

/** Brings a name in a path into the form in which it is stored and compared. */
export type Fold = (name: string) => string

/** The uuids of all mounts. */
export interface Uuids {
  has(uuid: string): boolean
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
  /** Makes the engine's rows for a new mount, in the transaction that makes the mount: no request finds it without. */
  onMount?(mount: Mount, tx: Transaction): Promise<void>
  /**
   * Removes a bounded portion of the data of a removed mount, which no request reaches any more; a job calls it until
   * nothing is left.
   * @returns whether there was anything
   */
  removeSome?(mount: Mount, claim: Claim): Promise<boolean>
  /** Frees this worker's memory for mounts that are not among these. */
  retain?(mounts: Uuids): void
  /**
   * Revokes the object of a lease. Called again when the outcome was unknown, so absence is not an error.
   * @param payload as the engine registered it
   */
  revokeLease?(mount: Mount, payload: Readonly<Record<string, unknown>>): Promise<void>
  /**
   * The uses of a managed key; a used key is not deleted.
   * @param q the transaction that would delete it @param managedKey uuid @param mounts of this engine @param most the
   *   most uses to return
   * @returns paths, with a version if there are several
   */
  managedKeyUses?(q: Reader, managedKey: string, mounts: readonly Mount[], most: number): Promise<readonly string[]>
  /** Numbers that warn an operator of trouble ahead; sys/health shows them to anybody who asks for details. */
  health?(): Promise<Data>
  /** Does what sys/plugins/reload/backend asks for. */
  reload?(mount: Mount): Promise<void>
}
