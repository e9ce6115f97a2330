import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { createAuthenticator } from '../../src/auth/authenticate.ts'
import { prepareAccess } from '../../src/auth/initialise.ts'
import { Policies } from '../../src/auth/policies.ts'
import type { CredentialKeys } from '../../src/auth/token.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import { type Clock, systemClock } from '../../src/clock.ts'
import { Hsm } from '../../src/hsm/hsm.ts'
import { Custody } from '../../src/keys/custody.ts'
import { initialise } from '../../src/keys/initialise.ts'
import { createLog } from '../../src/log.ts'
import { Database } from '../../src/store/database.ts'
import { createDatabase } from '../support/database.ts'
import { createToken } from '../support/token.ts'

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
  const schema = stack.use(await createDatabase())
  const { library, serial, pin } = await createToken('auth')
  const hsm = stack.use(
    await Hsm.open({
      library,
      token: { serial },
      pin,
      log,
      clock: systemClock,
      onFatal: (reason) => {
        throw reason
      },
    }),
  )
  const members: { nudged(): void }[] = []
  const nudge = () => {
    for (const member of members) member.nudged()
  }
  const open = () => Database.open({ url: schema.url, poolSize: 4, log, clock: systemClock, nudge })
  const first = stack.use(await open())
  await first.migrate()
  const limits = { strict: false, fips: false, handleLimit: 100, residentLimit: 0 }
  const common = { hsm, database: first, log, clock: systemClock, ...limits }
  const clock = new MovableClock()
  let rootToken = ''
  const populate = async (founded: Custody) => {
    const access = await prepareAccess({ database: first, keys: founded, clock, custom })
    await first.transaction((tx) => access.write(tx))
    rootToken = access.rootToken
    return undefined
  }
  await initialise({ ...common, kek: 'generate', name: 'test', populate })
  const custody = stack.use(await Custody.open(common))
  const keys = counted(custody)

  const made: Node[] = []
  for (let n = 0; n < nodes; n++) {
    const database = stack.use(await open())
    database.useMac(custody.rowMac)
    database.setEpoch(custody.epoch)
    await database.start()
    members.push(database)
    made.push(createNode(database, keys, clock, custody.epoch))
  }
  const [node] = made
  if (node === undefined) throw new Error('a world has at least one node')
  const sql = async (statement: string, values: unknown[] = []): Promise<RowDataPacket[]> => {
    const connection = await createConnection(schema.url)
    const [rows] = await connection.query<RowDataPacket[]>(statement, values).finally(() => connection.end())
    return rows
  }
  const dispose = () => stack.disposeAsync()
  return { node, nodes: made, keys, clock, sql, rootToken, [Symbol.asyncDispose]: dispose }
}

/** Custody's own keys, counting the calls into the token. */
function counted(custody: Custody): CredentialKeys & { calls: number } {
  return {
    calls: 0,
    audit: custody.audit,
    tokenMac(credential) {
      this.calls++
      return custody.tokenMac(credential)
    },
  }
}

function createNode(database: Database, keys: CredentialKeys, clock: Clock, epoch: number) {
  const revoked: string[] = []
  const onRevoke = async (ids: readonly string[]) => void revoked.push(...ids)
  const tokens = new Tokens({ database, keys, clock, epoch, onRevoke })
  const policies = new Policies({ database, clock })
  const authenticator = createAuthenticator({ tokens, policies })
  return { database, tokens, policies, authenticator, revoked, context: { tokens, policies, clock } }
}
