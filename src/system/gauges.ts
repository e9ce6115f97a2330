import type { Leases } from '../leases/leases.ts'
import type { Logger } from '../log.ts'
import { merge, type Snapshot, type WorkerSnapshots } from '../metrics/snapshot.ts'
import type { Metrics } from '../metrics.ts'
import type { Mounts } from '../request/mounts/mounts.ts'

interface Parts {
  readonly metrics: Metrics
  readonly mounts: Mounts
  readonly leases: Leases
}

/** Declares the gauges of the node and the cluster. */
export function shareGauges({ metrics, mounts, leases }: Parts): void {
  const one = (name: string, help: string) => metrics.shared(name, help, () => [{ labels: {}, value: 1 }])
  one('vault.core.unsealed', 'Whether this node is unsealed; a sealed one has no metrics.')
  one('vault.core.active', 'Whether this node serves; every one does.')
  metrics.shared('vault.core.mount_table.num_entries', 'Mounts, by type.', async () => {
    const byType = Map.groupBy(
      await mounts.list(),
      ({ path, local }) => `${path.startsWith('auth/') ? 'auth' : 'logical'} ${local}`,
    )
    return [...byType].map(([key, found]) => {
      const [type = '', local = ''] = key.split(' ')
      return { labels: { type, local }, value: found.length }
    })
  })
  metrics.shared('vault.expire.num_leases', 'Leases in the cluster.', async () => [
    { labels: {}, value: await leases.count() },
  ])
}

/** The metrics of the whole node, as answered by one worker. */
export async function nodeMetrics(
  metrics: Metrics,
  gather: () => Promise<WorkerSnapshots>,
  log: Logger,
): Promise<Snapshot> {
  const { snapshots, missing } = await gather()
  const silent = {
    name: 'strongroom.workers.silent',
    help: 'Workers that did not tell their numbers in time: of these only older totals are counted here.',
    labels: {},
    kind: 'gauge',
    value: missing,
  } as const
  const shared = await metrics.sharedSnapshot((metric, error) =>
    log.warn({ err: error, metric }, 'a metric cannot be read'),
  )
  return merge([...snapshots, shared, [silent]])
}
