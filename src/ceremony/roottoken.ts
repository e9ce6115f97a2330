import { RootGeneration } from '../auth/recovery.ts'
import { createRootToken } from '../auth/roottoken.ts'
import type { ProcessContext } from '../workload.ts'
import { type OpenCluster, recorded } from './record.ts'

/** A root token, to be printed once. */
export interface MadeRootToken {
  readonly credential: string
  /** Identifies the token, for revoking it. */
  readonly accessor: string
  readonly expiresAt: Date
}

type Context = Omit<ProcessContext, 'secrets'>

/** Makes a root token for the holder of PIN and database. @throws as `recorded` */
export async function makeRootToken(context: Context, open: OpenCluster, ttlSeconds: number): Promise<MadeRootToken> {
  const deps = { database: open.database, keys: open.custody.macs, clock: context.clock }
  const { credential, row } = await recorded(
    context,
    open,
    { path: 'sys/root-token', input: { ttl: ttlSeconds } },
    () => createRootToken(deps, ttlSeconds),
    (made) => ({
      client_token: made.credential,
      accessor: made.row.accessor,
      policies: made.row.policies,
      lease_duration: ttlSeconds,
    }),
  )
  return { credential, accessor: row.accessor, expiresAt: new Date(row.expiresAt ?? 0) }
}

/** Makes the secret for sys/generate-root, replacing an older one. @throws as `recorded` */
export function makeRecoverySecret(context: Context, open: OpenCluster): Promise<string> {
  const deed = { path: 'sys/recovery-secret', input: { enabled: true } }
  return recorded(
    context,
    open,
    deed,
    () => generationOf(context, open).enable(),
    () => ({}),
  )
}

/** Switches sys/generate-root off. @throws as `recorded` */
export function removeRecoverySecret(context: Context, open: OpenCluster): Promise<void> {
  const deed = { path: 'sys/recovery-secret', input: { enabled: false } }
  return recorded(
    context,
    open,
    deed,
    () => generationOf(context, open).disable(),
    () => ({}),
  )
}

function generationOf({ clock }: Context, { database, custody: { cluster, macs } }: OpenCluster): RootGeneration {
  return new RootGeneration({ database, keys: macs, clock, cluster: cluster.id, epoch: cluster.epoch })
}
