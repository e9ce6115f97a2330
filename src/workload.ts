import type { Clock } from './clock.ts'
import type { Secrets } from './config/secrets.ts'
import type { Config } from './config.ts'
import type { Logger } from './log.ts'
import type { Snapshot, WorkerSnapshots } from './metrics/snapshot.ts'
import type { Metrics } from './metrics.ts'
import type { MaybePromise } from './route.ts'

/** A leaf or a group of cached things (docs/coherence.md), and the number of its last change. */
export type Version = readonly [place: number, v: number]

/**
 * What the workers of one node tell each other over IPC. Each message is a fact that stays true, so that it may come
 * late, twice or to a worker that did not ask. `writer` is the incarnation of the process that committed.
 */
export type VersionMessage =
  | {
      readonly kind: 'written'
      readonly writer: string
      readonly leaves: readonly Version[]
      readonly groups: readonly Version[]
    }
  | {
      readonly kind: 'learned'
      readonly writer: string
      readonly registration: string
      readonly leaves: readonly Version[]
    }

/** The needs of any process that opens token or database. */
export interface ProcessContext {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly clock: Clock
  /** Absent in commands. */
  readonly metrics?: Metrics
}

/** The needs of a worker process; the functions are messages to the supervisor. */
export interface WorkloadOptions extends ProcessContext {
  /** Whether the node was sealed when this process started: then the module is not initialised. */
  readonly sealed: boolean
  /** Sends a message about versions to other workers of the node. */
  send(message: VersionMessage): void
  /** The process must exit. */
  onFatal(reason: Error): void
  /** Names an incarnation under which this process registers for coherence, so that it can be deleted after the process. */
  announce(incarnation: string): void
  /** Seals or unseals the node; resolves with the resulting state once every worker has followed. */
  requestSeal(sealed: boolean): Promise<boolean>
  /** Fetches the metrics of all workers of the node. */
  gather(): Promise<WorkerSnapshots>
}

/** The server that a worker process runs: the worker itself, or the stand-in. */
export interface Workload {
  listen(): Promise<{ addresses: readonly string[] }>
  /** Takes what another worker of the node has sent. */
  hear(message: VersionMessage): void
  /** Another node may have committed: looks at once. */
  poll(): void
  /** Stops accepting, finishes requests, disposes everything. */
  drain(): Promise<void>
  /** Drops every key and the login of the token, or takes them up again. */
  seal(sealed: boolean): MaybePromise<void>
  /** Deletes the coherence registrations of processes that have ended. */
  forget(incarnations: readonly string[]): MaybePromise<void>
  /** The metrics of this process. */
  snapshot(): Snapshot
}
