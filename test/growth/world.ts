import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { middle, never } from '../../scripts/bench/bulk.ts'
import { createApp } from '../../src/app.ts'
import { TokenCaller } from '../../src/auth/caller.ts'
import { RootGeneration } from '../../src/auth/recovery.ts'
import { tokenTraces } from '../../src/auth/token.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import { type Clock, systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config.ts'
import { dueKeys } from '../../src/engines/transit/ring/tables.ts'
import { leaseTraces } from '../../src/leases/lease.ts'
import { Leases } from '../../src/leases/leases.ts'
import { between } from '../../src/store/table.ts'
import type { Workload } from '../../src/workload.ts'
import { service } from '../auth/world.ts'
import { log, openHsm, Place, reopen } from '../keys/support.ts'
import { noLeases } from '../support/noleases.ts'
import type { TestServer } from '../support/server.ts'

const hour = 3_600_000

/** Two hours later, on a clock on which a job's period passes at once. */
const fast: Clock = {
  ...systemClock,
  wall: () => systemClock.wall() + 2 * hour,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds >= 5000 ? 100 : milliseconds, signal),
}

/** The data that requests of the story need. */
export interface Prepared {
  /** Leases that have not ended, of a mount that is gone: no engine here has any. */
  readonly leaseIds: readonly string[]
  /** The secret of sys/generate-root. */
  readonly recoverySecret: string
}

/** Prepares work for jobs two hours later, with a stopped server's keys: ended tokens and leases, a KEK to rotate. */
export async function prepare(server: TestServer): Promise<Prepared> {
  const mount = { uuid: randomUUID(), path: 'shop/', type: 'shop', config: {} }
  await using hsm = await openHsm(server.token)
  await using place = await Place.at(server.database.url)
  using custody = await reopen(hsm, place)
  const { database } = place
  const deps = { database, clock: systemClock, log, revokeInEngine: async () => undefined, removed: () => false }
  const tokens = new Tokens({ ...deps, keys: custody.macs, epoch: custody.cluster.epoch, leases: () => noLeases })
  const leases = new Leases({ ...deps, tokens })
  const { row } = await tokens.create(service(null, { ttlSeconds: 100_000 }))
  const parent = await tokens.create(service(null, { ttlSeconds: 60 }))
  await tokens.create(service(parent.row, { ttlSeconds: 30 }))
  const prepared = (path: string, ttlSeconds: number) =>
    leases.prepare(
      { mount, path, caller: new TokenCaller(row, '', String) },
      { payload: {}, ttlSeconds, maxTtlSeconds: 200_000, renewable: true },
    )
  const living = Array.from({ length: 12 }, (_, n) => prepared(`of/${n}`, 100_000))
  await database.transaction((tx) => leases.insert(tx, [...living, prepared('ended', 60)]))
  await custody.rotation.announce('use')
  const generation = new RootGeneration({
    ...deps,
    keys: custody.macs,
    cluster: custody.cluster.id,
    epoch: custody.cluster.epoch,
  })
  return { leaseIds: living.map(({ leaseId }) => leaseId), recoverySecret: await generation.enable() }
}

/** The listening socket, which a supervisor would have. */
async function openSocket(address: string, app: Pick<Workload, 'accept'>): Promise<Server> {
  const [host = '', port] = address.split(':')
  const socket = createServer({ allowHalfOpen: true }, (connection) => app.accept(address, connection))
  socket.listen(Number(port), host)
  await once(socket, 'listening')
  return socket
}

/** A worker in this process, on a clock on which every job runs several times a second. */
export async function startApp(server: TestServer, clock: Clock = fast) {
  const { config, secrets } = await loadConfig({ file: server.configFile, environment: {}, prompt: async () => '' })
  const fatal: Error[] = []
  const app = await createApp({
    ...{ config, secrets, log, clock, sealed: false },
    sharedLog: undefined,
    nudge: () => undefined,
    announce: () => undefined,
    onFatal: (reason) => void fatal.push(reason),
    requestSeal: async (sealed) => {
      await app.seal(sealed)
      return sealed
    },
    print: async () => false,
    gather: async () => ({ snapshots: [app.snapshot()], missing: 0 }),
    listInFlight: async () => app.inFlight(),
  })
  await app.listen()
  const socket = await openSocket(config.listeners[0]?.address ?? '', app)
  return {
    fatal,
    async [Symbol.asyncDispose]() {
      socket.close()
      await app.drain()
    },
  }
}

/**
 * Reads a page from the middle of rows that all have the same time, as a job does when very many things end together.
 */
export async function readBacklog(url: string): Promise<void> {
  await using place = await Place.at(url)
  const { database } = place
  const page = (table: number) => ({ after: [never, middle(table)], limit: 100 }) as const
  const at = between(1, never)
  const found = await database.read(async (q) => [
    await database.unverified(tokenTraces).list(q, { expiresAt: at }, { by: ['expiresAt', 'id'], ...page(0) }),
    await database.unverified(leaseTraces).list(q, { dueAt: at }, { by: ['dueAt', 'id'], ...page(1) }),
    await database.unverified(dueKeys).list(q, { rotateAt: at }, { by: ['rotateAt', 'id'], ...page(2) }),
  ])
  if (found.some((rows) => rows.length !== 100)) throw new Error('the backlog is not there')
}

/** Waits until nothing is missing, for a minute at most. */
export async function until(missing: () => Promise<readonly unknown[]>): Promise<void> {
  const end = performance.now() + 60_000
  for (let left = await missing(); left.length > 0; left = await missing()) {
    if (performance.now() > end) throw new Error(`missing after a minute: ${left.join(', ')}`)
    await delay(100)
  }
}
