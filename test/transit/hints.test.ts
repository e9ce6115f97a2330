import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Custody } from '../../src/keys/custody.ts'
import type { Mount } from '../../src/route.ts'
import { clock, manage, openCluster, openHsm, Place, reopen } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/**
 * A worker reads the rows of a key's last known id together with the key's row; another worker has replaced the key.
 */

const mount: Mount = { uuid: randomUUID(), path: 'transit/', type: 'transit', config: {} }
const stack = new AsyncDisposableStack()
let one: TransitContext
let other: TransitContext

function transit(place: Place, custody: Custody, hsm: Hsm) {
  const { operations, materials, transfer } = custody
  const { database } = place
  const { managed } = manage(custody, database, hsm)
  return createTransit({ database, operations, materials, transfer, managed, clock, ringLimit: 100 })
}

beforeAll(async () => {
  const hsm = stack.use(await openHsm(await createTestedToken('hints')))
  const first = stack.use(await Place.fresh())
  const engine = transit(first, stack.adopt(await openCluster(hsm, first), close), hsm)
  await first.database.transaction(async (tx) => engine.onMount?.(mount, tx))
  one = engine.context
  const second = stack.use(await Place.at(first.url))
  other = transit(second, stack.adopt(await reopen(hsm, second), close), hsm).context
}, 60_000)
afterAll(() => stack.disposeAsync())

const close = (custody: Custody): void => custody.close()
const template = (name: string) => ({ name, type: 'aes256-gcm96' })

/** A key of three versions that `other` has read, and that `one` has replaced since. */
async function replaced(): Promise<string> {
  const name = randomUUID()
  await one.keys.create(mount, template(name), 'me')
  for (let n = 0; n < 2; n++) await one.rotation.rotate(mount, name, 'me')
  expect((await other.rings.inventory(mount, name))?.ring.versions.size).toBe(3)
  await one.changes.change(mount, name, 'none', (tx, ring) => one.keys.remove(tx, ring))
  await one.keys.create(mount, template(name), 'me')
  return name
}

test('a key that was deleted and made again is read with its own versions and parts', async () => {
  const name = await replaced()
  const made = await one.rings.readInventory(mount, name)
  expect(await other.rings.readInventory(mount, name)).toEqual(made)
  expect((await other.rings.get(mount, name))?.key.id).toBe(made?.ring.key.id)
})

test('a key that was deleted and made again is rotated from its own versions', async () => {
  const name = await replaced()
  const { ring, parts } = await other.rotation.rotate(mount, name, 'me')
  expect([ring.key.latestVersion, ring.versions.size]).toEqual([2, 2])
  expect(await one.rings.readInventory(mount, name)).toEqual({ ring, parts })
})

test('a deleted key is not read from its remains', async () => {
  const name = await replaced()
  await other.changes.change(mount, name, 'none', (tx, ring) => other.keys.remove(tx, ring))
  expect([await one.rings.read(mount, name), await other.rings.inventory(mount, name)]).toEqual([undefined, undefined])
})
