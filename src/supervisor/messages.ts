import type { SecretValues } from '../config/secrets.ts'
import type { Config } from '../config.ts'
import type { Snapshot, WorkerSnapshots } from '../metrics/snapshot.ts'
import type { VersionMessage } from '../workload.ts'

/** A receiver of the supervisor's messages: a worker. */
export interface Recipient {
  send(message: ToWorker): void
}

/** Messages of the supervisor to a worker, over IPC. */
export type ToWorker =
  | { readonly type: 'start'; readonly config: Config; readonly secrets: SecretValues; readonly sealed: boolean }
  | { readonly type: 'drain' }
  /** Another node may have committed. */
  | { readonly type: 'poll' }
  /** From another worker of this node. */
  | { readonly type: 'versions'; readonly message: VersionMessage }
  | { readonly type: 'seal'; readonly sealed: boolean; readonly sequence: number }
  /** Every worker of the node has followed the seal message that the receiver asked for. */
  | { readonly type: 'sealDone'; readonly sealed: boolean }
  /** Report your metrics. */
  | { readonly type: 'measure'; readonly sequence: number }
  /** The metrics of all workers of the node, for the one that asked. */
  | { readonly type: 'gathered'; readonly gathered: WorkerSnapshots }
  /** Incarnations of processes that have ended: their coherence registrations may be deleted. */
  | { readonly type: 'ended'; readonly ids: readonly string[] }

/** Messages of a worker to the supervisor. */
export type FromWorker =
  | { readonly type: 'beat'; readonly rssBytes: number }
  | { readonly type: 'ready'; readonly addresses: readonly string[] }
  | { readonly type: 'failed'; readonly reason: string; readonly kind: FailureKind }
  /** For other workers of this node. */
  | { readonly type: 'versions'; readonly message: VersionMessage }
  | { readonly type: 'incarnation'; readonly id: string }
  /** The registrations of these ended incarnations are deleted. */
  | { readonly type: 'forgotten'; readonly ids: readonly string[] }
  | { readonly type: 'seal'; readonly sealed: boolean }
  | { readonly type: 'sealed'; readonly sequence: number }
  | { readonly type: 'gather' }
  | { readonly type: 'measured'; readonly sequence: number; readonly snapshot: Snapshot }

/** `pin`: the token refused the PIN, so it must not be tried again. */
export type FailureKind = 'pin' | 'other'
