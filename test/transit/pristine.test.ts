import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import type { TransitContext } from '../../src/engines/transit/context.ts'
import { createTransit } from '../../src/engines/transit/index.ts'
import type { Mount } from '../../src/route.ts'
import type { Database } from '../../src/store/database.ts'
import { clock, manage, useCluster } from '../keys/support.ts'

/** Whether anything was ever written to a mount: the first `enable` takes over only one that is untouched. */

let transit: Engine<TransitContext>
let database: Database
useCluster('pristine', ({ hsm, custody, place }) => {
  const { operations, materials, transfer } = custody
  database = place.database
  const { managed } = manage(custody, database, hsm)
  const ground = { database, operations, materials, transfer, managed, clock }
  transit = createTransit({ ...ground, ringLimit: 100 })
})

let mount: Mount
const pristine = () => transit.pristine?.(mount)
beforeEach(async () => {
  mount = { uuid: randomUUID(), path: `${randomUUID()}/`, type: 'transit', config: {} }
  await database.transaction(async (tx) => transit.onMount?.(mount, tx))
})

test('a new mount is pristine, and stays so while it is read', async () => {
  const { context } = transit
  expect(await context.rings.get(mount, 'k')).toBe(undefined)
  await context.settings.of(mount)
  expect(await pristine()).toBe(true)
})

test('a mount with a key is not, nor once the key is deleted', async () => {
  const { keys, changes } = transit.context
  await keys.create(mount, { name: 'k', type: 'aes256-gcm96' }, 'me')
  expect(await pristine()).toBe(false)
  await changes.change(mount, 'k', 'no key', (tx, ring) => keys.remove(tx, ring))
  expect(await transit.context.rings.empty(mount)).toBe(true)
  expect(await pristine()).toBe(false)
})

test.each([{ disableUpsert: true }, { disableUpsert: false }, { cacheSize: 10 }])(
  'a mount with the setting %j is not',
  async (setting) => {
    await transit.context.settings.change(mount, setting)
    expect(await pristine()).toBe(false)
  },
)

test('a mount that has a wrapping key is not', async () => {
  await transit.context.keyImport.wrappingKey(mount.uuid, 'me')
  expect(await pristine()).toBe(false)
})
