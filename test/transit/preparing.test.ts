import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import { badRequest } from '../../src/errors.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Custody } from '../../src/keys/custody.ts'
import type { Mount } from '../../src/route.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { clock, manage, openCluster, openHsm, Place } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/** Versions that are not completed: one of their parts, or the token, fails. */

const deviceMemory = 0x31
const mount: Mount = { uuid: randomUUID(), path: 'transit/', type: 'transit', config: {} }

let shim: Shim
let hsm: Hsm
let place: Place
let custody: Custody
let context: TransitContext

beforeAll(async () => {
  const token = await createTestedToken('preparing')
  shim = await createShim(token.library)
  hsm = await openHsm({ ...token, library: shim.library })
  place = await Place.fresh()
  custody = await openCluster(hsm, place, { strict: true })
  const { operations, materials, transfer } = custody
  const { database } = place
  const { managed } = manage(custody, database, hsm)
  const transit = createTransit({ database, operations, materials, transfer, clock, managed, ringLimit: 100 })
  await database.transaction(async (tx) => transit.onMount?.(mount, tx))
  context = transit.context
}, 120_000)
afterAll(async () => {
  custody?.close()
  await place?.[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})
beforeEach(() => shim.clear())

test('a key that lies in the token alone leaves it when its HMAC secret is refused', async () => {
  const wanted = {
    ...{ type: 'ed25519', exportable: false, allowPlaintextBackup: false, keySize: 0 },
    ...{ derived: false, kdf: '', hmacInHsmOnly: null },
  }
  const hmac = () => Promise.reject(badRequest('no such secret'))
  await expect(context.versions.prepare(wanted, 'me', { hmac })).rejects.toThrow('no such secret')
  expect(await hsm.find({ class: 'private', token: true })).toEqual([])
  expect(await place.sql('SELECT id FROM intents')).toEqual([])
})

test('a rotation by a remembered key asks a token that fails as often as one by a key just read', async () => {
  // Of a type of which no keys are made ahead.
  for (const name of ['remembered', 'other']) await context.keys.create(mount, { name, type: 'rsa-2048' }, 'me')
  // A change here that locks the key's row makes the worker remember it.
  await place.database.transaction((tx) => context.rings.lockRow(tx, mount, 'remembered'))
  expect(context.rings.recall(mount, 'remembered')).toBeDefined()
  expect(context.rings.recall(mount, 'other')).toBeUndefined()
  const calls = async (name: string): Promise<number> => {
    shim.set({ groups: group.key, rv: deviceMemory })
    await expect(context.rotation.rotate(mount, name, 'me')).rejects.toMatchObject({ status: 503 })
    return shim.read().counted
  }
  const fresh = await calls('other')
  expect(fresh).toBeGreaterThan(0)
  expect(await calls('remembered')).toBe(fresh)
})

test('where a key was made ahead it is used though the token makes none now, once and whole', async () => {
  const rotate = () => context.rotation.rotate(mount, 'ahead', 'me')
  await context.keys.create(mount, { name: 'ahead', type: 'aes256-gcm96' }, 'me')
  await clock.sleep(50)
  shim.set({ groups: group.key, rv: deviceMemory })
  const { ring, parts } = await rotate()
  await expect(rotate()).rejects.toMatchObject({ status: 503 })
  shim.clear()
  await rotate()
  const blobs = await place.sql(`SELECT \`blob\` FROM materials WHERE owner = '${ring.key.id}'`)
  expect(new Set(blobs.map(({ blob }) => (blob as Buffer).toString('hex'))).size).toBe(blobs.length)
  expect([ring.key.latestVersion, parts.size, blobs.length]).toEqual([2, 4, 6])
})
