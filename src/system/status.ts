import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { text } from '../field.ts'
import { Answer, type Call, type Data, route } from '../route.ts'
import type { SystemContext } from './context.ts'

/** The API level this server answers as: clients parse it as strict semver and switch features by it. */
const apiVersion = '1.13.0'
const product = { product: 'strongroom', product_version: '0.1.0' }
const nothing = Type.Object({})

/** Codes are text here, since a bad one has an answer of its own. Standby and secondary states never occur. */
const healthQuery = Type.Object({
  activecode: text({ about: 'Status of an active node; 200 when absent.' }),
  sealedcode: text({ about: 'Status of a node that is sealed or has lost its token; 503 when absent.' }),
})

/** A final status; 1xx would leave the client waiting for another one. */
function code(given: string | undefined, usual: number): number {
  if (given === undefined) return usual
  if (!/^[2-5]\d\d$/.test(given)) throw new ApiError(400, [])
  return Number(given)
}

function health({ context, body }: Call<SystemContext, typeof healthQuery>): Answer {
  const { status } = context
  const sealed = status.sealed()
  const active = code(body.activecode, 200)
  const down = code(body.sealedcode, 503)
  const healthy = status.hsmHealthy()
  const bare: Data = {
    initialized: true,
    sealed,
    standby: false,
    performance_standby: false,
    replication_performance_mode: sealed ? 'unknown' : 'disabled',
    replication_dr_mode: sealed ? 'unknown' : 'disabled',
    server_time_utc: Math.floor(status.clock.wall() / 1000),
    version: apiVersion,
    ...(sealed ? {} : { cluster_name: status.clusterName, cluster_id: status.clusterId }),
    hsm: healthy ? 'ready' : 'lost',
    ...product,
  }
  return new Answer({ status: sealed || !healthy ? down : active, bare })
}

const healthRoute = (method: 'GET' | 'HEAD') =>
  route<SystemContext, typeof healthQuery>({
    method,
    path: 'health',
    access: 'public',
    about: 'Whether this node serves: its state is in the status code.',
    body: healthQuery,
    danger: 'none',
    run: health,
  })

export const statusRoutes = [
  healthRoute('GET'),
  healthRoute('HEAD'),
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'seal-status',
    access: 'public',
    about: 'Whether this node is sealed.',
    body: nothing,
    danger: 'none',
    run({ context: { status } }) {
      const sealed = status.sealed()
      const bare = {
        type: 'pkcs11',
        initialized: true,
        sealed,
        t: 1,
        n: 1,
        progress: 0,
        nonce: '',
        version: apiVersion,
        build_date: '',
        migration: false,
        ...(sealed ? {} : { cluster_name: status.clusterName, cluster_id: status.clusterId }),
        recovery_seal: false,
        storage_type: 'mysql',
        ...product,
      }
      return new Answer({ bare })
    },
  }),
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'leader',
    access: 'public',
    about: 'Every node serves; there is no leader.',
    body: nothing,
    danger: 'none',
    run: () =>
      new Answer({
        bare: {
          ha_enabled: false,
          is_self: false,
          active_time: '0001-01-01T00:00:00Z',
          leader_address: '',
          leader_cluster_address: '',
          performance_standby: false,
          performance_standby_last_remote_wal: 0,
        },
      }),
  }),
  route<SystemContext, typeof nothing>({
    method: 'GET',
    path: 'init',
    access: 'public',
    about: 'Whether the cluster was initialised; a server that answers was.',
    body: nothing,
    danger: 'none',
    run: () => new Answer({ bare: { initialized: true } }),
  }),
]
