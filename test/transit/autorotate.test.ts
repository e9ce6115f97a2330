import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import type { KeyRow } from '../../src/engines/transit/ring/tables.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Job } from '../../src/job.ts'
import type { Custody } from '../../src/keys/custody.ts'
import type { Mount } from '../../src/route.ts'
import { openSql, type Sql } from '../attack/sql.ts'
import { manage, openCluster, openHsm, Place, clock as realClock, reopen } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/** Keys that rotate by themselves, with two workers of one database and a clock that the test moves. */

interface Worker {
  readonly place: Place
  readonly custody: Custody
  readonly context: TransitContext
  readonly job: Job
}

const hour = 3_600_000
let aheadMilliseconds = 0
const clock: Clock = { ...realClock, wall: () => realClock.wall() + aheadMilliseconds }
const mount: Mount = { uuid: randomUUID(), path: 'transit/', type: 'transit', config: {} }
const never = new AbortController().signal

let hsm: Hsm
let sql: Sql
let workers: [Worker, Worker]

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('rotation'))
  const place = await Place.fresh()
  sql = await openSql(place.url)
  const first = worker(place, await openCluster(hsm, place))
  const second = await Place.at(place.url)
  workers = [first, worker(second, await reopen(hsm, second))]
  await place.database.transaction(async (tx) =>
    createTransit({ ...ground(first), ringLimit: 100 }).onMount?.(mount, tx),
  )
}, 60_000)
afterAll(async () => {
  for (const { custody } of workers ?? []) custody.close()
  await sql?.[Symbol.asyncDispose]()
  for (const { place } of [...(workers ?? [])].reverse()) await place[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
})

const ground = ({ place, custody }: { place: Place; custody: Custody }) => {
  const { database } = place
  const { operations, materials, transfer } = custody
  return { database, operations, materials, transfer, clock, managed: manage(custody, database, hsm).managed }
}

function worker(place: Place, custody: Custody): Worker {
  const { context, jobs } = createTransit({ ...ground({ place, custody }), ringLimit: 100 })
  const job = jobs?.find(({ name }) => name === 'rotate transit keys')
  if (job === undefined) throw new Error('transit has no such job')
  return { place, custody, context, job }
}

const made = (settings: Partial<KeyRow> = {}): Promise<string> => {
  const name = `k${randomUUID()}`
  const wanted = { name, type: 'aes256-gcm96', autoRotateSeconds: 3600, ...settings }
  return workers[0].context.keys.create(mount, wanted, 'me').then(() => name)
}
const latest = async (name: string) => (await workers[1].context.rings.get(mount, name))?.key.latestVersion
const change = (name: string, changes: Partial<KeyRow>) =>
  workers[0].context.changes.change(mount, name, 'none', (tx, ring) =>
    workers[0].context.changes.update(tx, ring, changes),
  )

/** One turn of the job in a worker that takes its lease. */
async function turn({ place, job }: Worker, signal = never): Promise<boolean> {
  const lease = await place.database.jobLease(job.name, 60)
  if (lease === undefined) return false
  await job.run(signal, lease.fence).finally(() => lease.release())
  return true
}

test('a key rotates when its period is over and not before, and again one period later', async () => {
  const name = await made()
  await turn(workers[0])
  expect(await latest(name)).toBe(1)
  aheadMilliseconds += hour - 60_000
  await turn(workers[0])
  expect(await latest(name)).toBe(1)
  aheadMilliseconds += 120_000
  await turn(workers[0])
  await turn(workers[1])
  expect(await latest(name)).toBe(2)
  aheadMilliseconds += hour - 60_000
  await turn(workers[1])
  expect(await latest(name)).toBe(2)
  aheadMilliseconds += 120_000
  await turn(workers[1])
  expect(await latest(name)).toBe(3)
})

test('a key whose job was missed for many periods rotates once', async () => {
  const name = await made()
  aheadMilliseconds += 50 * hour
  await turn(workers[0])
  await turn(workers[0])
  expect(await latest(name)).toBe(2)
})

test('a rotation by hand restarts the period', async () => {
  const name = await made()
  aheadMilliseconds += hour - 60_000
  await workers[0].context.rotation.rotate(mount, name, 'me')
  aheadMilliseconds += 120_000
  await turn(workers[1])
  expect(await latest(name)).toBe(2)
})

test('setting, changing and ending the period by config counts from the latest version', async () => {
  const name = await made({ autoRotateSeconds: 0 })
  aheadMilliseconds += 3 * hour
  await turn(workers[0])
  expect(await latest(name)).toBe(1)
  await change(name, { autoRotateSeconds: 7200 })
  await turn(workers[0])
  expect(await latest(name)).toBe(2)
  await change(name, { autoRotateSeconds: 0 })
  aheadMilliseconds += 10 * hour
  await turn(workers[0])
  expect(await latest(name)).toBe(2)
})

test('a key that was imported rotates by itself only when it was allowed to', async () => {
  const [allowed, not] = [await made(), await made()]
  await change(allowed, { imported: true, allowRotation: true })
  await change(not, { imported: true, allowRotation: false })
  aheadMilliseconds += 2 * hour
  await turn(workers[1])
  expect([await latest(allowed), await latest(not)]).toEqual([2, 1])
})

test('a soft-deleted key does not rotate until it is restored', async () => {
  const name = await made()
  await change(name, { softDeleted: true })
  aheadMilliseconds += 2 * hour
  await turn(workers[0])
  expect(await latest(name)).toBe(1)
  await change(name, { softDeleted: false })
  await turn(workers[0])
  expect(await latest(name)).toBe(2)
})

test('a key of which new secrets may never be in memory does not rotate where the token cannot make one', async () => {
  const name = await made({ type: 'hmac', keySize: 16 })
  await change(name, { hmacInHsmOnly: true })
  aheadMilliseconds += 2 * hour
  await expect(turn(workers[0])).rejects.toThrow('1 keys failed to rotate automatically')
  expect(await latest(name)).toBe(1)
  await change(name, { hmacInHsmOnly: false })
  // By the worker that may still remember the old key row.
  await turn(workers[0])
  expect(await latest(name)).toBe(2)
})

test('a secret that was made before its key forbade it in memory is not stored', async () => {
  const name = await made({ type: 'hmac', keySize: 16, autoRotateSeconds: 0 })
  // This worker remembers the key from now on.
  await workers[1].context.rotation.rotate(mount, name, 'me')
  await change(name, { hmacInHsmOnly: true })
  expect(workers[1].context.rings.recall(mount, name)?.hmacInHsmOnly).not.toBe(true)
  await expect(workers[1].context.rotation.rotate(mount, name, 'me')).rejects.toThrow('hmac_in_hsm_only: ')
  expect(await latest(name)).toBe(2)
})

test('two workers that both believe to hold the lease rotate a key once', async () => {
  const names = await Promise.all(Array.from({ length: 10 }, () => made()))
  aheadMilliseconds += 2 * hour
  const lease = await workers[0].place.database.jobLease(workers[0].job.name, 60)
  const fence = lease?.fence ?? 0n
  await Promise.all(workers.map(({ job }) => job.run(never, fence)))
  await lease?.release()
  expect(new Set(await Promise.all(names.map(latest)))).toEqual(new Set([2]))
})

test('a worker whose lease was taken over rotates nothing', async () => {
  const name = await made()
  aheadMilliseconds += 2 * hour
  const [first, second] = workers
  const old = await first.place.database.jobLease(first.job.name, 60)
  await old?.release()
  const taken = await second.place.database.jobLease(second.job.name, 60)
  await expect(first.job.run(never, old?.fence ?? 0n)).rejects.toThrow('was taken over')
  expect(await latest(name)).toBe(1)
  await second.job.run(never, taken?.fence ?? 0n)
  await taken?.release()
  expect(await latest(name)).toBe(2)
})

test('a key whose row is damaged keeps no other from rotating, and is reported', async () => {
  const [broken, sound] = [await made(), await made()]
  const undo = await sql.edit(
    'transit_keys',
    (await sql.row('SELECT id FROM transit_keys WHERE name = ?', [broken])).id ?? null,
    {
      min_decryption_version: 0,
    },
  )
  aheadMilliseconds += 2 * hour
  await expect(turn(workers[0])).rejects.toThrow('1 keys failed to rotate automatically')
  expect(await latest(sound)).toBe(2)
  await undo()
  await turn(workers[0])
  expect(await latest(broken)).toBe(2)
})

test('an edited due time is damage, and neither hastens a rotation nor puts it off unnoticed', async () => {
  const name = await made()
  const { id = null } = await sql.row('SELECT id FROM transit_keys WHERE name = ?', [name])
  const undo = await sql.edit('transit_keys', id, { rotate_at: 1 })
  await expect(turn(workers[0])).rejects.toThrow('failed to rotate')
  await undo()
  expect(await latest(name)).toBe(1)
})

test("a version's history shows that it was made automatically", async () => {
  const name = await made()
  aheadMilliseconds += 2 * hour
  await turn(workers[0])
  const found = await workers[0].context.rings.inventory(mount, name)
  const makers = [...(found?.parts.values() ?? [])].map(({ version, createdBy }) => `${version} ${createdBy}`)
  expect(new Set(makers)).toEqual(new Set(['1 me', '2 auto-rotation']))
})
