import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hmac } from '../../src/engines/transit/ciphers/hmac.ts'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { NoMaterial } from '../../src/keys/materials/materials.ts'
import type { Mount } from '../../src/route.ts'
import { openSql, type Sql } from '../attack/sql.ts'
import { clock, manage, openCluster, openHsm, Place, reopen } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/** An HMAC secret is opened by one worker while another changes its key: the opening waits for the key's lock. */

interface Worker {
  readonly place: Place
  readonly custody: Custody
  readonly context: TransitContext
}

const mount: Mount = { uuid: randomUUID(), path: 'transit/', type: 'transit', config: {} }
let hsm: Hsm
let sql: Sql
let workers: [Worker, Worker]

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('opening'))
  const place = await Place.fresh()
  sql = await openSql(place.url)
  const custody = await openCluster(hsm, place)
  const second = await Place.at(place.url)
  workers = [worker(place, custody), worker(second, await reopen(hsm, second))]
  await place.database.transaction(async (tx) =>
    createTransit({ ...ground(place, custody), ringLimit: 100 }).onMount?.(mount, tx),
  )
}, 60_000)
afterAll(async () => {
  for (const { custody } of workers ?? []) custody.close()
  await sql?.[Symbol.asyncDispose]()
  for (const { place } of [...(workers ?? [])].reverse()) await place[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
})

const ground = (place: Place, custody: Custody) => {
  const { database } = place
  const { operations, materials, transfer } = custody
  return { database, operations, materials, transfer, clock, managed: manage(custody, database, hsm).managed }
}
const worker = (place: Place, custody: Custody): Worker => ({
  ...{ place, custody },
  context: createTransit({ ...ground(place, custody), ringLimit: 100 }).context,
})

/** A key of type hmac, known to both workers. */
async function made(): Promise<string> {
  const name = `k${randomUUID()}`
  await workers[0].context.keys.create(mount, { name, type: 'hmac' }, 'me')
  for (const { context } of workers) await context.rings.get(mount, name)
  return name
}

/** An HMAC that SoftHSM lacks, by the second worker, with the key's first version. */
async function askHmac(name: string): Promise<Buffer> {
  const { context } = workers[1]
  const ring = await context.rings.get(mount, name)
  const version = ring?.versions.get(1)
  if (ring === undefined || version === undefined) throw new Error('there is no such key')
  return hmac({ context, ring, version, warn: () => {} }, 'sha3-256', Buffer.from('hello'))
}

const secretOf = (name: string) =>
  sql.rows(
    `SELECT m.residence, m.ever_plaintext FROM materials m JOIN transit_keys k ON k.id = m.owner
      WHERE k.name = ? AND m.version = 1`,
    [name],
  )
const closed = { residence: 'wrapped', ever_plaintext: 0 }

/** InnoDB answers from a snapshot of transactions to a reader that returns within a tenth of a second. */
const lookEveryMilliseconds = 150

/** Waits until the call has ended or waits for a lock. */
async function heldUp(call: Promise<unknown>): Promise<void> {
  let ended = false
  call.then(
    () => (ended = true),
    () => (ended = true),
  )
  const waits = async () =>
    (await sql.rows("SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")).length > 0
  while (!ended && !(await waits())) await new Promise((resolve) => setTimeout(resolve, lookEveryMilliseconds))
}

/** Asks for an HMAC while the first worker has changed the key and not committed yet. */
async function during(name: string, change: (ask: () => Promise<void>) => Promise<unknown>): Promise<Promise<Buffer>> {
  const { promise: asking, resolve } = Promise.withResolvers<{ answer: Promise<Buffer> }>()
  await change(async () => {
    const answer = askHmac(name)
    resolve({ answer })
    await heldUp(answer)
  })
  return (await asking).answer
}

test('it stays closed where the key forbids that it is opened by the time its lock is free', async () => {
  const name = await made()
  const { changes } = workers[0].context
  const answer = during(name, (ask) =>
    changes.change(mount, name, 'none', async (tx, ring) => {
      const changed = await changes.update(tx, ring, { hmacInHsmOnly: true })
      await ask()
      return changed
    }),
  )
  await expect(answer).rejects.toMatchObject({
    status: 400,
    message: 'hmac_in_hsm_only: the HSM lacks CKM_SHA3_256_HMAC',
  })
  expect(await secretOf(name)).toMatchObject([closed])
})

test('it is gone where the key was deleted by the time its lock is free', async () => {
  const name = await made()
  const { changes, keys } = workers[0].context
  const answer = during(name, (ask) =>
    changes.change(mount, name, 'none', async (tx, ring) => {
      await keys.remove(tx, ring)
      await ask()
      return ring
    }),
  )
  await expect(answer).rejects.toBeInstanceOf(NoMaterial)
  expect(await secretOf(name)).toEqual([])
})

test('it is opened after a rotation, and neither undoes the other', async () => {
  const name = await made()
  const { rotation } = workers[0].context
  const answer = await during(name, (ask) =>
    rotation.rotate(mount, name, 'me', {
      async isDue() {
        await ask()
        return true
      },
    }),
  )
  const ring = await workers[1].context.rings.get(mount, name)
  expect(ring?.key.latestVersion).toBe(2)
  expect(await secretOf(name)).toMatchObject([{ residence: 'enveloped', ever_plaintext: 1 }])
  const material = await workers[1].custody.materials.fetch(ring?.versions.get(1)?.material ?? '')
  const expected = await workers[1].custody.managed.blobs.open(material, (secret) =>
    createHmac('sha3-256', secret).update('hello').digest(),
  )
  expect(answer).toEqual(expected)
})

test('one that is being opened twice at once is opened once, with one answer', async () => {
  const name = await made()
  const [one, other] = await Promise.all([askHmac(name), askHmac(name)])
  expect(one).toEqual(other)
  expect(await secretOf(name)).toMatchObject([{ residence: 'enveloped', ever_plaintext: 1 }])
})
