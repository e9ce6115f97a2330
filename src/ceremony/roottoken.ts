import { randomUUID } from 'node:crypto'
import { Audit } from '../audit/audit.ts'
import type { AuditedRequest } from '../audit/entry.ts'
import { createRootToken } from '../auth/roottoken.ts'
import type { Custody } from '../keys/custody.ts'
import { Answer } from '../route.ts'
import type { Database } from '../store/database.ts'
import type { ProcessContext } from '../workload.ts'

/** A root token, to be printed once. */
export interface MadeRootToken {
  readonly credential: string
  /** Names the token to whoever revokes it. */
  readonly accessor: string
  readonly expiresAt: Date
}

const path = 'sys/root-token'

/**
 * Makes a root token for whoever holds PIN and database. It is on record in an audit device of this machine first, where
 * there is any.
 * @throws ApiError 500 when no audit device can be written: nothing was made then, or nothing is handed out
 */
export async function makeRootToken(
  { config, clock, log }: Omit<ProcessContext, 'secrets'>,
  { database, custody }: { database: Database; custody: Custody },
  ttlSeconds: number,
): Promise<MadeRootToken> {
  const { macs, cluster } = custody
  const auditOptions = { ...config.audit, database, keys: macs.audit, epoch: cluster.epoch, clock, log }
  await using audit = new Audit(auditOptions)
  const trail = await audit.begin(path, () => audited(ttlSeconds))
  const make = () => createRootToken({ database, keys: macs, clock }, ttlSeconds)
  const { credential, row } = await (trail?.recordRequest(make) ?? make())
  const auth = { client_token: credential, accessor: row.accessor, policies: row.policies, lease_duration: ttlSeconds }
  await trail?.recordResponse(new Answer({ auth }), [], { status: 200, headers: [], body: '' })
  await audit.trySealHeads()
  return { credential, accessor: row.accessor, expiresAt: new Date(row.expiresAt ?? 0) }
}

const audited = (ttlSeconds: number): AuditedRequest => ({
  id: randomUUID(),
  operation: 'update',
  path,
  input: { command: 'strongroom', ttl: ttlSeconds },
  credential: '',
  remoteAddress: '',
  remotePort: 0,
  clientCertificate: undefined,
  mount: undefined,
})
