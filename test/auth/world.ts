import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { createAuthenticator } from '../../src/auth/authenticate.ts'
import { prepareAccess } from '../../src/auth/initialise.ts'
import { Policies } from '../../src/auth/policies.ts'
import type { TokenLeases } from '../../src/auth/revoke.ts'
import type { CredentialKeys, NewToken, TokenRow } from '../../src/auth/token.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import { type Clock, systemClock } from '../../src/clock.ts'
import { Hsm } from '../../src/hsm/hsm.ts'
import type { Job } from '../../src/job.ts'
import { Custody } from '../../src/keys/custody.ts'
import { initialise } from '../../src/keys/initialise.ts'
import { createLog } from '../../src/log.ts'
import { Database } from '../../src/store/database.ts'
import type { SharedLogPlace } from '../../src/workload.ts'
import { TestLog } from '../store/coherence/testlog.ts'
import { quiet } from '../store/support.ts'
import { noLeases } from '../support/noleases.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { createMigrated } from '../support/template/migrated.ts'

const log = createLog('silent')

/** A clock that runs with the machine's, and can be set ahead. */
export class MovableClock implements Clock {
  ahead = 0
  wall = () => systemClock.wall() + this.ahead
  monotonic = systemClock.monotonic
  sleep = systemClock.sleep
}

export type Node = Awaited<ReturnType<typeof createNode>>
export type World = Awaited<ReturnType<typeof createWorld>>

/** One token, one database, `nodes` workers with caches of their own, and a root token. */
export async function createWorld(nodes = 1, custom?: string) {
  const stack = new AsyncDisposableStack()
  const schema = stack.use(await createMigrated())
  const { library, serial, pin, directory } = await createTestedToken('auth')
  const hsm = stack.use(
    await Hsm.open({
      library,
      token: { serial },
      pin,
      stateDirectory: directory,
      log,
      clock: systemClock,
      onFatal: (reason) => {
        throw reason
      },
    }),
  )
  const sharedLog = stack.use(new TestLog())
  const open = (url = schema.url, place?: SharedLogPlace) =>
    Database.open({ url, poolSize: 4, log, clock: systemClock, ...(place ? { sharedLog: place } : {}) })
  const first = stack.use(await open())
  const limits = { strict: false, fips: false, handleLimit: 100, residentLimit: 0 }
  const common = { hsm, database: first, log, clock: systemClock, ...limits }
  const clock = new MovableClock()
  let rootToken = ''
  const populate = async (founded: Custody) => {
    const access = await prepareAccess({ database: first, keys: founded.macs, clock, custom })
    await first.transaction((tx) => access.write(tx))
    rootToken = access.rootToken
    return undefined
  }
  await initialise({ ...common, kek: 'generate', name: 'test', populate })
  const custody = stack.use(await Custody.open(common))
  const keys = counted(custody.macs)

  /** A worker of another node, perhaps with another URL of the database. It caches nothing until it is started. */
  const join = (url = schema.url): Promise<Node> => joinAt(url)
  const joinAt = async (url: string, place?: SharedLogPlace): Promise<Node> => {
    const database = stack.use(await open(url, place))
    database.useMac(custody.macs.rowMac)
    database.setEpoch(custody.cluster.epoch)
    return createNode(database, keys, clock, custody.cluster.epoch)
  }
  const made: Node[] = []
  for (let n = 0; n < nodes; n++) {
    const member = await joinAt(schema.url, sharedLog.place())
    await member.database.start()
    made.push(member)
  }
  const [node] = made
  if (node === undefined) throw new Error('a world has at least one node')
  const sql = async (statement: string, values: unknown[] = []): Promise<RowDataPacket[]> => {
    const connection = await createConnection(schema.url)
    const [rows] = await connection.query<RowDataPacket[]>(statement, values).finally(() => connection.end())
    return rows
  }
  const dispose = () => stack.disposeAsync()
  return { node, nodes: made, join, url: schema.url, keys, clock, sql, rootToken, [Symbol.asyncDispose]: dispose }
}

/** The cluster's own keys, counting the calls into the token. */
function counted(keys: CredentialKeys): CredentialKeys & { calls: number } {
  return {
    calls: 0,
    audit: keys.audit,
    tokenMac(credential) {
      this.calls++
      return keys.tokenMac(credential)
    },
  }
}

function createNode(database: Database, keys: CredentialKeys, clock: Clock, epoch: number) {
  const revoked: string[] = []
  const leases = {
    ...noLeases,
    revokeByToken: async (ids: readonly string[]) => {
      revoked.push(...ids)
      return 0
    },
  }
  const tokens = new Tokens({ database, keys, clock, log: quiet, epoch, leases: () => leases })
  const policies = new Policies({ database, clock })
  const authenticator = createAuthenticator({ tokens, policies, hashAccessor: String })
  const start = async (job: Job) => {
    await runJob(database, job)
    return true
  }
  return { database, tokens, policies, authenticator, revoked, context: { tokens, policies, clock, start } }
}

/** The workers have removed the rows of the revocations that they answered. */
export async function removed({ nodes }: World): Promise<void> {
  await Promise.all(nodes.map(({ tokens }) => tokens.removeRevoked()))
}

/** The tokens of the first worker as they are with other leases, or in another epoch. */
export function tokensWith(
  { node: { database }, keys, clock }: World,
  leases: Partial<TokenLeases>,
  epoch = 1,
): Tokens {
  return new Tokens({ database, keys, clock, log: quiet, epoch, leases: () => ({ ...noLeases, ...leases }) })
}

/** Does a leased job once, as its holder. */
export async function runJob(database: Database, job: Job): Promise<void> {
  const lease = await database.jobLease(job.name, 60)
  if (lease === undefined) throw new Error(`${job.name} is being done elsewhere`)
  await job.run(new AbortController().signal, lease.fence).finally(() => lease.release())
}

/** Does a leased job once; `meanwhile` runs when the job has listed the due rows and has changed nothing yet. */
export async function whileJobWaits(
  { node: { database }, url }: { node: { database: Database }; url: string },
  job: Job,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const lease = await database.jobLease(job.name, 60)
  if (lease === undefined) throw new Error(`${job.name} is being done elsewhere`)
  await using other = await createConnection(url)
  const count = async (sql: string, values: string[]) => (await other.query<RowDataPacket[]>(sql, values))[0].length
  await other.query('START TRANSACTION')
  await other.query('SELECT fence FROM job_leases WHERE name = ? FOR UPDATE', [job.name])
  const running = job.run(new AbortController().signal, lease.fence)
  const waiting = `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE ?`
  while ((await count(waiting, ['UPDATE job_leases SET beats%'])) === 0) await delay(10)
  await meanwhile()
  await other.query('COMMIT')
  await running.finally(() => lease.release())
}

/** A token to make, of an ordinary kind. */
export const service = (parent: TokenRow | null, more: Partial<NewToken> = {}): NewToken => ({
  parent,
  path: 'auth/token/create',
  policies: ['app', 'default'],
  meta: null,
  displayName: 'token',
  renewable: true,
  numUses: 0,
  ttlSeconds: 3600,
  explicitMaxTtlSeconds: 0,
  periodSeconds: 0,
  ...more,
})
