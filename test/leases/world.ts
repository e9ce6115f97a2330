import { TokenCaller } from '../../src/auth/caller.ts'
import type { TokenRow } from '../../src/auth/token.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import type { Engine } from '../../src/engine.ts'
import { engineRevoker } from '../../src/leases/engines.ts'
import type { LeaseRequest } from '../../src/leases/lease.ts'
import { Leases } from '../../src/leases/leases.ts'
import { createLog } from '../../src/log.ts'
import type { Mount } from '../../src/route.ts'
import { createWorld, type Node, runJob, service } from '../auth/world.ts'

/** An engine that records the payloads it revoked, and can be told to fail. */
export class Ledger implements Engine<undefined> {
  readonly type = 'ledger'
  readonly context = undefined
  readonly routes = []
  readonly taken: unknown[] = []
  broken: ((payload: unknown) => boolean) | undefined

  async revokeLease(_: Mount, payload: Readonly<Record<string, unknown>>): Promise<void> {
    if (this.broken?.(payload)) throw new Error('the engine is out of order')
    this.taken.push(payload.what)
  }
}

export type LeaseNode = ReturnType<typeof leaseNode>
export type LeaseWorld = Awaited<ReturnType<typeof createLeaseWorld>>

/** Workers with leases, over one ledger mounted at shop/. */
export async function createLeaseWorld(nodes = 2) {
  const world = await createWorld(nodes)
  const ledger = new Ledger()
  const mount: Mount = { uuid: '11111111-1111-4111-8111-111111111111', path: 'shop/', type: 'ledger', config: {} }
  const mounts: Mount[] = [mount]
  const removed = new Set<string>()
  const made = world.nodes.map((node) => leaseNode(node, world, ledger, { mounts, removed }))
  const [node] = made
  if (node === undefined) throw new Error('a world has at least one node')
  return {
    ...world,
    world,
    ledger,
    mount,
    mounts,
    removed,
    nodes: made,
    node,
    /** Another worker, perhaps with another URL of the database. */
    join: async (url?: string) => leaseNode(await world.join(url), world, ledger, { mounts, removed }),
    [Symbol.asyncDispose]: world[Symbol.asyncDispose],
  }
}

function leaseNode(
  { database }: Node,
  { keys, clock }: Awaited<ReturnType<typeof createWorld>>,
  ledger: Ledger,
  { mounts, removed }: { mounts: readonly Mount[]; removed: ReadonlySet<string> },
) {
  const tokens = new Tokens({ database, keys, clock, log: createLog('silent'), epoch: 1, leases: () => leases })
  const revokeInEngine = engineRevoker(async () => mounts, new Map([[ledger.type, ledger]]))
  const leases = new Leases({
    database,
    clock,
    log: createLog('silent'),
    tokens,
    revokeInEngine,
    removed: (uuid) => removed.has(uuid),
  })

  /** Issues a lease as an engine does. `what` is recorded in the ledger when the lease is revoked. */
  async function issue(token: TokenRow, what: string, more: Partial<LeaseRequest> & { path?: string } = {}) {
    const { path = 'issue/a', ...request } = more
    const [mount] = mounts
    if (mount === undefined) throw new Error('nothing is mounted')
    const caller = new TokenCaller(token, 'not looked at', String)
    const asked = { payload: { what }, ttlSeconds: 600, maxTtlSeconds: 1200, renewable: true, ...request }
    const row = leases.prepare({ mount, path, caller }, asked)
    await database.transaction((tx) => leases.insert(tx, [row]))
    return { id: row.id, ...(await leases.confirm(row).then((lease) => ({ leaseId: lease.id, lease }))) }
  }
  const token = async (parent: TokenRow | null = null, more = {}) => tokens.create(service(parent, more))
  const expire = () => runJob(database, leases.expiry)
  const tidy = () => runJob(database, leases.tidying)
  return { database, tokens, leases, issue, token, expire, tidy }
}
