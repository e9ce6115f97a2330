import type { Socket } from 'node:net'
import type { Clock } from './clock.ts'
import type { Secrets } from './config/secrets.ts'
import type { Config } from './config.ts'
import type { Logger } from './log.ts'
import type { InFlightRequest } from './metrics/inflight.ts'
import type { Snapshot, WorkerSnapshots } from './metrics/snapshot.ts'
import type { Metrics } from './metrics.ts'
import type { MaybePromise } from './route.ts'

/** A leaf or a group of cached values (docs/coherence.md), and the number of its last change. */
export type Version = readonly [place: number, v: number]

/** A process's place in the log that the workers of its node share (store/coherence/sharedlog.ts). */
export interface SharedLogPlace {
  readonly id: string
  readonly descriptor: number
  /** Its own ring of records. */
  readonly slot: number
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
  /** Absent where no memory can be shared: then the workers of the node hear of changes by their polls. */
  readonly sharedLog: SharedLogPlace | undefined
  /** Makes other nodes poll, because this process has committed. */
  nudge(): void
  /** The process must exit. */
  onFatal(reason: Error): void
  /**
   * Announces an incarnation under which this process registers for coherence, so that its registration can be deleted
   * after the process has ended.
   */
  announce(incarnation: string): void
  /** Seals or unseals the node; resolves with the resulting state once every worker has followed. */
  requestSeal(sealed: boolean): Promise<boolean>
  /** Writes whole lines to the server's standard output; resolves with whether they are written. */
  print(lines: string): Promise<boolean>
  /** Fetches the metrics of all workers of the node. */
  gather(): Promise<WorkerSnapshots>
  /** Fetches the requests that the workers of the node are answering. @throws ApiError 503 when a worker is silent */
  listInFlight(): Promise<readonly InFlightRequest[]>
}

/** The server that a worker process runs: the worker itself, or the stand-in. */
export interface Workload {
  /** Makes its listeners, whose connections the supervisor accepts. @throws Error when a file of TLS cannot be read */
  listen(): Promise<void>
  /** Serves a connection that came to the listener with this address. */
  accept(address: string, connection: Socket): void
  /** Polls at once: another node may have committed. */
  poll(): void
  /** The node will end soon: sys/health says so from now on, and everything else is served. */
  announceEnd(): void
  /** Reopens audit files that were moved. */
  reopen(): MaybePromise<void>
  /** Stops accepting, finishes requests, disposes everything. */
  drain(): Promise<void>
  /** Drops every key and the token login, or restores them. */
  seal(sealed: boolean): MaybePromise<void>
  /** Deletes the coherence registrations of processes that have ended. */
  forget(incarnations: readonly string[]): MaybePromise<void>
  /** The metrics of this process. */
  snapshot(): Snapshot
  /** The requests that this process is answering. */
  inFlight(): readonly InFlightRequest[]
}
