import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { text } from '../field.ts'
import { Answer, type Call, type Data, route } from '../route.ts'
import type { Status, StatusContext } from './context.ts'

/** The API level this server answers as: clients parse it as strict semver and switch features by it. */
export const apiVersion = '1.13.0'
const product = { product: 'strongroom', product_version: '0.1.0' }
const nothing = Type.Object({})

const answersWith = (state: string) => text({ about: `Status code of a node that ${state}.` })
const never = 'Read, and of no effect: every node is active.'

/** Codes are text here, since a bad one has an answer of its own. */
const healthQuery = Type.Object({
  activecode: answersWith('is active; 200 when absent'),
  sealedcode: answersWith('is sealed or has lost its token; 503 when absent'),
  standbycode: answersWith('stands by; there is none'),
  uninitcode: answersWith('is not initialised; such a node does not start'),
  drsecondarycode: answersWith('is a disaster recovery secondary; there is none'),
  performancestandbycode: answersWith('is a performance standby; there is none'),
  removedcode: answersWith('was removed from the cluster; there is none'),
  standbyok: text({ about: never }),
  perfstandbyok: text({ about: never }),
})

/** A final status; 1xx would leave the client waiting for another one. */
function code(given: string | undefined, usual: number): number {
  if (given === undefined) return usual
  if (!/^[2-5]\d\d$/.test(given)) throw new ApiError(400, [])
  return Number(given)
}

const unusedCodes = ['standbycode', 'uninitcode', 'drsecondarycode', 'performancestandbycode', 'removedcode'] as const

function health({ context, body }: Call<StatusContext, typeof healthQuery>): Answer {
  const { status } = context
  const sealed = status.sealed()
  const active = code(body.activecode, 200)
  const down = code(body.sealedcode, 503)
  for (const other of unusedCodes) code(body[other], 200)
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
    hsm: sealed ? 'closed' : healthy ? 'ready' : 'lost',
    ...product,
  }
  return new Answer({ status: sealed || !healthy ? down : active, bare })
}

const healthRoute = (method: 'GET' | 'HEAD') =>
  route<StatusContext, typeof healthQuery>({
    method,
    path: 'health',
    access: 'public',
    audited: false,
    about: 'Whether this node serves: its state is in the status code.',
    body: healthQuery,
    danger: 'none',
    run: health,
  })

/** What sys/seal-status and sys/unseal answer. One secret opens the node, so there is never a half of it. */
export function sealStatus(status: Status, sealed = status.sealed()): Data {
  return {
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
    // The worker that has just opened says so before it knows whose it is.
    ...(status.clusterId === '' ? {} : { cluster_name: status.clusterName, cluster_id: status.clusterId }),
    recovery_seal: false,
    storage_type: 'mysql',
    ...product,
  }
}

export const statusRoutes = [
  healthRoute('GET'),
  healthRoute('HEAD'),
  route<StatusContext, typeof nothing>({
    method: 'GET',
    path: 'seal-status',
    access: 'public',
    audited: false,
    about: 'Whether this node is sealed.',
    body: nothing,
    danger: 'none',
    run: ({ context }) => new Answer({ bare: sealStatus(context.status) }),
  }),
  route<StatusContext, typeof nothing>({
    method: 'GET',
    path: 'leader',
    access: 'public',
    audited: false,
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
  route<StatusContext, typeof nothing>({
    method: 'GET',
    path: 'init',
    access: 'public',
    audited: false,
    about: 'Whether the cluster was initialised; a server that answers was.',
    body: nothing,
    danger: 'none',
    run: () => new Answer({ bare: { initialized: true } }),
  }),
]
