import { randomUUID } from 'node:crypto'
import { Audit } from '../audit/audit.ts'
import { auditDirectory } from '../config/places.ts'
import type { Custody } from '../keys/custody.ts'
import { Answer, type Data } from '../route.ts'
import { Settings } from '../settings/settings.ts'
import type { Database } from '../store/database.ts'
import type { ProcessContext } from '../workload.ts'

/** An open cluster, as commands use it. */
export interface OpenCluster {
  readonly database: Database
  readonly custody: Custody
}

/** A command as the audit shows it: its path is not in the API, but has the same form. */
export interface Deed {
  readonly path: string
  readonly input: Data
}

/**
 * Carries out a command; before that it is recorded in an audit device of this machine, if there is one.
 * @param describe the `auth` in the record of the response
 * @throws ApiError 500 when no audit device can be written: then nothing was done, or its result is withheld
 */
export async function recorded<T>(
  { config, clock, log }: Omit<ProcessContext, 'secrets'>,
  { database, custody }: OpenCluster,
  { path, input }: Deed,
  work: () => Promise<T>,
  describe: (result: T) => Data,
): Promise<T> {
  const { macs, cluster } = custody
  const directory = auditDirectory(config)
  const auditOptions = {
    ...config.audit,
    directory,
    settings: new Settings(database),
    database,
    keys: macs.audit,
    epoch: cluster.epoch,
    clock,
    log,
  }
  await using audit = new Audit(auditOptions)
  const from = { credential: '', remoteAddress: '', remotePort: 0, clientCertificate: undefined, mount: undefined }
  const trail = await audit.begin(path, () => ({
    id: randomUUID(),
    operation: 'update',
    path,
    input,
    sent: '',
    ...from,
  }))
  if (trail === undefined) return work()
  const result = await trail.recordRequest(work)
  await trail.recordResponse(new Answer({ auth: describe(result) }), [], { status: 200, headers: [], body: '' })
  await audit.trySealHeads()
  return result
}
