import type { Audit } from '../audit/audit.ts'
import type { Policies } from '../auth/policies.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { Clock } from '../clock.ts'
import type { Engine, Job } from '../engine.ts'
import type { ManagedAdministration } from '../keys/managed/administration.ts'
import type { Leases } from '../leases/leases.ts'
import type { Snapshot } from '../metrics/snapshot.ts'
import type { Mounts } from '../request/mounts/mounts.ts'
import type { ApiSection } from '../request/openapi.ts'

/** What this node is, for whoever asks without a token. */
export interface Status {
  readonly clusterName: string
  readonly clusterId: string
  readonly clock: Clock
  /** When the cluster was made; milliseconds. */
  readonly createdAt: number
  /** Whether an operator sealed this node. */
  sealed(): boolean
  /** False while the PKCS#11 token does not answer. */
  hsmHealthy(): boolean
}

/** What the paths are given that answer on a sealed node too. */
export interface StatusContext {
  readonly status: Status
  /**
   * Opens the node to whoever has the unseal secret; what is open already needs none.
   * @returns whether the node is sealed afterwards
   * @throws {ApiError} 400 for another secret, before the token sees a login; 503 when token or database do not let it open
   */
  unseal(secret: string): Promise<boolean>
}

/** What the routes of /v1/sys are given. */
export interface SystemContext extends StatusContext {
  /** Closes every worker of this node; resolves when the last has let go of its keys. */
  seal(): Promise<boolean>
  readonly mounts: Mounts
  readonly policies: Policies
  readonly audit: Audit
  readonly tokens: Tokens
  readonly leases: Leases
  readonly managedKeys: ManagedAdministration
  /** What the whole node has measured. */
  metrics(): Promise<Snapshot>
  /** Begins a job in the background, once; answers false when it is running already. */
  start(job: Job): Promise<boolean>
  /** The routes of every engine, sys/ among them. */
  sections(): readonly ApiSection[]
  /** The engines that can be mounted, by type. */
  readonly engines: ReadonlyMap<string, Engine>
}
