import type { Policies } from '../auth/policies.ts'
import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import type { Mounts } from '../request/mounts.ts'

/** What this node is, for whoever asks without a token. */
export interface Status {
  readonly clusterName: string
  readonly clusterId: string
  readonly clock: Clock
  /** Whether an operator sealed this node. */
  sealed(): boolean
  /** False while the PKCS#11 token does not answer. */
  hsmHealthy(): boolean
}

/** What the routes of /v1/sys are given. */
export interface SystemContext {
  readonly status: Status
  readonly mounts: Mounts
  readonly policies: Policies
  /** The engines that can be mounted, by type. */
  readonly engines: ReadonlyMap<string, Engine>
}
