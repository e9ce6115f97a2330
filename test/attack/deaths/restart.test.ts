import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { Custody } from '../../../src/keys/custody.ts'
import { leaseTable } from '../../../src/leases/lease.ts'
import { enable, type Line } from '../../audit/device.ts'
import { openHsm, options, Place } from '../../keys/support.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { alive, expectServed, serving, until } from '../nodes.ts'
import { openSql } from '../sql.ts'
import { verifyWhole } from '../writers.ts'
import { startChores } from './chores.ts'

/**
 * A restart during everything: tokens are made, renewed, used up and revoked, leases renewed and taken back, policies
 * written and removed, mounts made, tuned, moved and removed, audit devices enabled and disabled, while workers and
 * whole nodes end, gently and not.
 */

/** Acknowledged requests between two ends, so that each comes in the middle of several. */
const between = 60

/** Leases as an engine gives them, of a mount that is gone: no engine gives any yet. @returns their ids */
async function giveLeases(server: TestServer, count: number): Promise<string[]> {
  const issuedAt = Date.now()
  const expiresAt = issuedAt + 3_600_000
  const rows = Array.from({ length: count }, (_, n) => ({
    ...{ id: randomUUID(), mount: randomUUID(), token: randomUUID(), leaseId: `shop/issue/${n}`, payload: {} },
    ...{ renewable: true, ttlSeconds: 3600, maxTtlSeconds: 36_000, issuedAt, expiresAt, lastRenewalAt: null },
    ...{ attempts: 0, dueAt: expiresAt },
  }))
  const hsm = await openHsm(server.token)
  {
    await using place = await Place.at(server.database.url)
    using _custody = await Custody.open(options(hsm, place.database))
    await place.database.transaction((tx) => place.database.table(leaseTable).insertMany(tx, rows))
  }
  await hsm[Symbol.asyncDispose]()
  return rows.map(({ leaseId }) => leaseId)
}

async function killWorker(server: TestServer): Promise<void> {
  const [first] = serving(server)
  if (first === undefined) throw new Error('no worker serves')
  process.kill(first, 'SIGKILL')
  await until(() => serving(server).filter((pid) => pid !== first).length === 2)
}

async function killNode(server: TestServer): Promise<void> {
  const workers = serving(server)
  await server.kill()
  await until(() => !workers.some(alive))
  await server.start()
}

async function restart(server: TestServer): Promise<void> {
  await server.stop()
  await server.start()
}

async function seal(server: TestServer): Promise<void> {
  await until(async () => (await server.client().post('sys/seal')).status === 204)
  const open = () => server.client('').post('sys/unseal', { key: server.unsealSecret })
  await until(async () => (await open().catch(() => undefined))?.status === 200)
}

/**
 * Chains of the lines are without gap, and each answer that came is there with its request: where several devices are
 * enabled, in one of them, since it goes out when one has its line, and the worker may end before the others do.
 */
function verifyRecord(record: readonly Line[], others: readonly Line[][], answered: readonly string[]): void {
  const own = typesIn(record)
  const all = [own, ...others.map(typesIn)]
  for (const id of answered) {
    const types = all.flatMap((one) => one.get(id) ?? [])
    expect(types, id).toEqual(expect.arrayContaining(['request', 'response']))
    const whole = own.get(id) ?? []
    expect(whole, id).toEqual(['request', 'response'].slice(0, whole.length))
  }
}

/** By request, the types of its lines. */
function typesIn(lines: readonly Line[]): ReadonlyMap<string, readonly string[]> {
  const last = new Map<string, number>()
  const types = new Map<string, string[]>()
  for (const { type, request, chain } of lines) {
    expect(chain.sequence).toBe((last.get(chain.incarnation) ?? 0) + 1)
    last.set(chain.incarnation, chain.sequence)
    types.set(request.id, [...(types.get(request.id) ?? []), type])
  }
  return types
}

test('nothing acknowledged is lost and nothing half-written is served, whatever process ends when', async () => {
  await using server = await startServer({ workers: 2 })
  const record = await enable(server.client())
  expectServed(await server.client().post('transit/keys/key'))
  const leaseIds = await giveLeases(server, 300)
  const chores = startChores({ root: server.client(), clientOf: (credential) => server.client(credential), leaseIds })
  for (const end of [killWorker, killNode, restart, killWorker, seal, killNode]) {
    const before = chores.acknowledged
    await until(() => chores.acknowledged >= before + between)
    await end(server)
  }
  const before = chores.acknowledged
  await until(() => chores.acknowledged >= before + between)
  await chores.stop()
  verifyRecord(record.lines(), chores.records(), chores.answered)
  // Once from the workers' caches, once from the database.
  await chores.verify()
  await chores.verify()
  await restart(server)
  await chores.verify()
  await using sql = await openSql(server.database.url)
  await verifyWhole(server.client(), sql)
}, 600_000)
