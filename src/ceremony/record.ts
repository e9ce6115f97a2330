import { randomUUID } from 'node:crypto'
import { Audit } from '../audit/audit.ts'
import type { Custody } from '../keys/custody.ts'
import { Answer, type Data } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { ProcessContext } from '../workload.ts'

/** An opened cluster, as a command has it. */
export interface OpenCluster {
  readonly database: Database
  readonly custody: Custody
}

/** What a command does, as the audit shows it: no path of the API, but of its form. */
export interface Deed {
  readonly path: string
  readonly input: Data
}

/**
 * Does what a command was asked to, on record in an audit device of this machine first, where there is any.
 * @param describe what the response's record shows as `auth`
 * @throws ApiError 500 when no audit device can be written: nothing was done then, or nothing is handed out
 */
export async function recorded<T>(
  { config, clock, log }: Omit<ProcessContext, 'secrets'>,
  { database, custody }: OpenCluster,
  { path, input }: Deed,
  work: () => Promise<T>,
  describe: (result: T) => Data,
): Promise<T> {
  const { macs, cluster } = custody
  const auditOptions = { ...config.audit, database, keys: macs.audit, epoch: cluster.epoch, clock, log }
  await using audit = new Audit(auditOptions)
  const from = { credential: '', remoteAddress: '', remotePort: 0, clientCertificate: undefined, mount: undefined }
  const trail = await audit.begin(path, () => ({ id: randomUUID(), operation: 'update', path, input, ...from }))
  if (trail === undefined) return work()
  const result = await trail.recordRequest(work)
  await trail.recordResponse(new Answer({ auth: describe(result) }), [], { status: 200, headers: [], body: '' })
  await audit.trySealHeads()
  return result
}
