import { type TObject, Type } from 'typebox'
import type { Audit } from '../audit/audit.ts'
import type { Policies } from '../auth/policies.ts'
import type { RootGeneration } from '../auth/recovery.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import type { Job } from '../job.ts'
import type { KeyStatus } from '../keys/cluster/cluster.ts'
import type { ManagedAdministration } from '../keys/managed/administration.ts'
import type { Leases } from '../leases/leases.ts'
import type { InFlightRequest } from '../metrics/inflight.ts'
import type { Snapshot } from '../metrics/snapshot.ts'
import type { LeaseQuotas } from '../quota/leasecount.ts'
import type { Mounts } from '../request/mounts/mounts.ts'
import type { Foldings } from '../request/names/folding.ts'
import type { ApiSection } from '../request/openapi/document.ts'
import type { Data, Route } from '../route.ts'
import type { Settings } from '../settings/settings.ts'
import type { HashContext } from '../tools/hash.ts'
import type { RandomContext } from '../tools/random.ts'
import type { Tries } from './tries.ts'

/** The state of this node, for callers without a token. */
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
  /** False while the database takes longer to answer than caches may be used without it. */
  databaseHealthy(): boolean
  /** Whether the node was asked to end and still serves for a while. */
  draining(): boolean
  /** The engines' reports on their own health, by type; absent while the node is sealed. */
  details?(): Promise<Data>
}

/** The context of routes that also answer on a sealed node. */
export interface StatusContext {
  readonly status: Status
  /**
   * Unseals the node by its unseal secret; an unsealed node accepts any.
   * @returns whether the node is sealed afterwards
   * @throws {ApiError} 400 for a wrong secret, before any login to the token; 503 when token or database refuse
   */
  unseal(secret: string): Promise<boolean>
}

/** The context of the routes of /v1/sys. */
export interface SystemContext extends StatusContext, HashContext, RandomContext {
  /** Seals every worker of this node; resolves when the last one has dropped its keys. */
  seal(): Promise<boolean>
  readonly mounts: Mounts
  readonly policies: Policies
  readonly audit: Audit
  readonly settings: Settings
  readonly tokens: Tokens
  readonly leases: Leases
  readonly leaseQuotas: Pick<LeaseQuotas, 'count' | 'recount'>
  readonly managedKeys: ManagedAdministration
  readonly rootGeneration: RootGeneration
  /** Tries of the recovery secret. */
  readonly tries: Tries
  /** The KEK of the server's own keys. */
  keyStatus(): Promise<KeyStatus>
  /** The metrics of the whole node. */
  metrics(): Promise<Snapshot>
  /** The requests that the workers of this node are answering. */
  inFlight(): Promise<readonly InFlightRequest[]>
  /** Starts a background job; false when it is running already. */
  start(job: Job): Promise<boolean>
  /** The routes of every engine, sys/ among them. */
  sections(): readonly ApiSection[]
  /** Names in paths that can be spelt in several ways. */
  foldings(): Foldings
  /** The engines that can be mounted, by type. */
  readonly engines: ReadonlyMap<string, Engine>
}

/** Keeps each body's type from the declaration to `run`. */
export const endpoint = <Body extends TObject>(route: Route<SystemContext, Body>): Route<SystemContext, Body> => route

/** The same for routes that also answer on a sealed node. */
export const statusEndpoint = <Body extends TObject>(route: Route<StatusContext, Body>): Route<StatusContext, Body> =>
  route

/** The body of routes without fields. */
export const noFields = Type.Object({})
