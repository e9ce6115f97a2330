import type { SecretValues } from '../config/secrets.ts'
import type { Config } from '../config.ts'
import type { InFlightRequest } from '../metrics/inflight.ts'
import type { Snapshot, WorkerSnapshots } from '../metrics/snapshot.ts'
import type { SharedLogPlace } from '../workload.ts'

/** A receiver of the supervisor's messages: a worker. */
export interface Recipient {
  send(message: ToWorker): void
}

/** Messages of the supervisor to a worker, over IPC. */
export type ToWorker =
  | {
      readonly type: 'start'
      readonly config: Config
      readonly secrets: SecretValues
      readonly sealed: boolean
      readonly sharedLog?: SharedLogPlace | undefined
    }
  /** Comes with a connection to this listener. */
  | { readonly type: 'connection'; readonly address: string }
  /** The node will end soon. */
  | { readonly type: 'announceEnd' }
  | { readonly type: 'drain' }
  /** Another node may have committed. */
  | { readonly type: 'poll' }
  /** Audit files may have been moved: reopen their paths. */
  | { readonly type: 'reopen' }
  | { readonly type: 'seal'; readonly sealed: boolean; readonly sequence: number }
  /**
   * Every worker of the node has followed the seal message that the receiver asked for. With a problem: the disk did
   * not take it, so that a restart would end a seal, and a sealed node stays so.
   */
  | { readonly type: 'sealDone'; readonly sealed: boolean; readonly problem?: string | undefined }
  /** Report your metrics. */
  | { readonly type: 'measure'; readonly sequence: number }
  /** Whether the lines of a print message are written. */
  | { readonly type: 'printed'; readonly sequence: number; readonly written: boolean }
  /** The metrics of all workers of the node, for the one that asked. */
  | { readonly type: 'gathered'; readonly gathered: WorkerSnapshots; readonly question?: number | undefined }
  /** Report the requests that you are answering. */
  | { readonly type: 'listRequests'; readonly sequence: number }
  /** The requests of all workers of the node, for the one that asked. */
  | {
      readonly type: 'requests'
      readonly requests: readonly InFlightRequest[]
      /** Workers that did not answer in time. */
      readonly missing?: number
      readonly question?: number | undefined
    }
  /** Incarnations of processes that have ended: their coherence registrations may be deleted. */
  | { readonly type: 'ended'; readonly ids: readonly string[] }

/** Messages of a worker to the supervisor. */
export type FromWorker =
  | { readonly type: 'beat'; readonly rssBytes: number }
  /** Its listeners take connections. */
  | { readonly type: 'ready' }
  /** It has the connection that it was given last, and may be given another. */
  | { readonly type: 'taken' }
  | { readonly type: 'failed'; readonly reason: string; readonly kind: FailureKind }
  /** It has committed, and other nodes should poll. */
  | { readonly type: 'nudge' }
  | { readonly type: 'incarnation'; readonly id: string }
  /** The registrations of these ended incarnations are deleted. */
  | { readonly type: 'forgotten'; readonly ids: readonly string[] }
  | { readonly type: 'seal'; readonly sealed: boolean }
  | { readonly type: 'sealed'; readonly sequence: number }
  /** For standard output: whole lines. */
  | { readonly type: 'print'; readonly sequence: number; readonly lines: string }
  /** `question`: its number among those of this worker, which the answer repeats; earlier programs gave no number. */
  | { readonly type: 'gather'; readonly question?: number }
  | { readonly type: 'measured'; readonly sequence: number; readonly snapshot: Snapshot }
  | { readonly type: 'askRequests'; readonly question?: number }
  | { readonly type: 'listed'; readonly sequence: number; readonly requests: readonly InFlightRequest[] }

/** `pin`: the token refused the PIN, so it must not be tried again. */
export type FailureKind = 'pin' | 'other'
