import { Type } from 'typebox'
import { anyObject, bare, empty, titled } from '../../answers.ts'
import { ApiError } from '../../errors.ts'
import { text } from '../../field.ts'
import { Answer, type Call, type Data, type MaybePromise } from '../../route.ts'
import { type StatusContext, statusEndpoint } from '../context.ts'
import { apiVersion, product } from '../version.ts'

const healthAnswer = titled('Health', {
  initialized: Type.Boolean(),
  sealed: Type.Boolean(),
  standby: Type.Boolean(),
  performance_standby: Type.Boolean(),
  replication_performance_mode: Type.String(),
  replication_dr_mode: Type.String(),
  server_time_utc: Type.Integer(),
  version: Type.String(),
  cluster_name: Type.Optional(Type.String()),
  cluster_id: Type.Optional(Type.String()),
  hsm: Type.String(),
  database: Type.String(),
  product: Type.String(),
  product_version: Type.String(),
  detail: Type.Optional(anyObject),
})

const statusOf = (state: string) => text({ about: `Status code of a node that ${state}.` })
const ignored = 'Read, and of no effect: every node is active.'

/** Codes are text here, since a bad one has an answer of its own. */
const healthQuery = Type.Object({
  activecode: statusOf('is active; 200 when absent'),
  sealedcode: statusOf('is sealed, is about to end, or has lost its token or its database; 503 when absent'),
  standbycode: statusOf('stands by; there is none'),
  uninitcode: statusOf('is not initialised; such a node does not start'),
  drsecondarycode: statusOf('is a disaster recovery secondary; there is none'),
  performancestandbycode: statusOf('is a performance standby; there is none'),
  removedcode: statusOf('was removed from the cluster; there is none'),
  standbyok: text({ about: ignored }),
  perfstandbyok: text({ about: ignored }),
  detail: text({ about: 'When given, also what the engines say of their own health, in numbers.' }),
})

const unusedCodes = ['standbycode', 'uninitcode', 'drsecondarycode', 'performancestandbycode', 'removedcode'] as const

/** A final status; 1xx would leave the client waiting for another one. */
function statusCode(requested: string | undefined, usual: number): number {
  if (requested === undefined) return usual
  if (!/^[2-5]\d\d$/.test(requested)) throw new ApiError(400, [])
  return Number(requested)
}

async function details({ status }: StatusContext, bare: Data): Promise<Data> {
  try {
    return { ...bare, detail: await status.details?.() }
  } catch {
    // The state is reported even while the database does not answer.
    return bare
  }
}

function health({ context, body }: Call<StatusContext, typeof healthQuery>): MaybePromise<Answer> {
  const { status } = context
  const [sealed, draining] = [status.sealed(), status.draining()]
  const active = statusCode(body.activecode, 200)
  const down = statusCode(body.sealedcode, 503)
  for (const unused of unusedCodes) statusCode(body[unused], 200)
  const [hsm, database] = [status.hsmHealthy(), status.databaseHealthy()]
  const bare: Data = {
    initialized: true,
    sealed,
    // The reference's word for a node that serves, but should not be sent new clients.
    standby: draining,
    performance_standby: false,
    replication_performance_mode: sealed ? 'unknown' : 'disabled',
    replication_dr_mode: sealed ? 'unknown' : 'disabled',
    server_time_utc: Math.floor(status.clock.wall() / 1000),
    version: apiVersion,
    ...(sealed ? {} : { cluster_name: status.clusterName, cluster_id: status.clusterId }),
    hsm: sealed ? 'closed' : hsm ? 'ready' : 'lost',
    database: sealed ? 'closed' : database ? 'ready' : 'late',
    ...product,
  }
  const code = sealed || draining || !hsm || !database ? down : active
  if (body.detail === undefined) return new Answer({ status: code, bare })
  return details(context, bare).then((all) => new Answer({ status: code, bare: all }))
}

export const readHealth = statusEndpoint({
  method: 'GET',
  path: 'health',
  access: 'public',
  audited: false,
  about: 'Whether this node serves: its state is in the status code.',
  body: healthQuery,
  answers: [...bare(healthAnswer, '2XX'), ...bare(healthAnswer, 503), ...empty],
  run: health,
})

export const probeHealth = statusEndpoint({ ...readHealth, method: 'HEAD' })
