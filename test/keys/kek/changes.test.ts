import { randomBytes, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { Rotation } from '../../../src/keys/cluster/rotation.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { KekSet } from '../../../src/keys/kek/kekset.ts'
import { keksTable, usageTable } from '../../../src/keys/tables.ts'
import { clock, log, makeKey, Place, reopen, useCluster } from '../support.ts'

let hsm: Hsm
let place: Place
let custody: Custody

useCluster('kekchanges', (made) => {
  ;({ hsm, place, custody } = made)
})

const wanted = { algorithm: 'aes256-gcm96', exportable: false, part: 'key', createdBy: 'me' } as const
const destroyed = { purpose: 'use', state: 'destroyed', origin: 'generated', mechanism: 0 } as const

it('a key that is being stored while the KEKs change is stored', async () => {
  const draft = await custody.materials.prepare(wanted)
  const { database } = place
  const row = await database.transaction(async (tx) => {
    custody.materials.expect(tx, [draft])
    // The transaction has already read the set.
    await database.table(usageTable).exists(tx, {})
    await new KekSet(database).change(async (other) => {
      const checkValue = Buffer.alloc(8)
      const [id, ckaId] = [randomUUID(), randomBytes(20)]
      await database.table(keksTable).insert(other, { ...destroyed, id, ckaId, checkValue, createdAt: clock.wall() })
    })
    await custody.rotation.status()
    return custody.materials.insert(tx, draft, { mount: '', key: randomUUID(), version: 1 })
  })
  expect((await custody.materials.fetch(row.id)).row.kek).toBe(draft.fields.kek)
})

it('a worker that could not ask the token how far the KEKs were asks again', async () => {
  let [asked, away] = [0, false]
  const set = new KekSet(place.database, 0, async () => {
    asked++
    if (away) throw new Error('the token is away')
    return 0
  })
  const keks = new Keks(hsm, place.database, false, set)
  const { id: cluster } = custody.cluster
  const { database } = place
  const rotation = new Rotation({
    hsm,
    database,
    keks,
    set,
    clock,
    log,
    strict: false,
    cluster,
    anchor: async () => {},
  })
  await keks.list()
  away = true
  await expect(rotation.prove()).rejects.toThrow('the token is away')
  away = false
  const before = asked
  await rotation.prove()
  await rotation.prove()
  expect(asked).toBe(before + 1)
})

it('a cached set that is older than the change the token remembers does not decide what may be stored', async () => {
  let newest = 0
  const { database } = place
  const set = new KekSet(database, 0, async () => newest)
  const keks = new Keks(hsm, database, false, set)
  const { id } = (await keks.active('use')).row
  const mayStore = () => database.transaction((tx) => keks.mayStore(tx, id))
  expect(await mayStore()).toBe(true)
  newest = set.seen + 1
  await set.learn()
  await expect(mayStore()).rejects.toMatchObject({ status: 503 })
})

it('a cluster with more KEKs than may wait for the database shows them all, goes on, and starts', async () => {
  await new KekSet(place.database).change(async (tx) => {
    const checkValue = Buffer.alloc(8)
    const rows = Array.from({ length: 600 }, () => {
      return { ...destroyed, id: randomUUID(), ckaId: randomBytes(20), checkValue, createdAt: clock.wall() }
    })
    await place.database.table(keksTable).insertMany(tx, rows)
  })
  expect((await custody.cluster.kekIds()).length).toBeGreaterThan(600)
  const { promise: shown, resolve: release } = Promise.withResolvers<void>()
  const others = Array.from({ length: 3 }, () =>
    place.database.transaction(async (tx) => {
      await place.database.table(keksTable).exists(tx, {})
      await shown
    }),
  )
  const all = await custody.rotation.status().finally(release)
  await Promise.all(others)
  expect(all.length).toBeGreaterThan(600)
  await custody.rotation.announce('open')
  await using elsewhere = await Place.at(place.url)
  using other = await reopen(hsm, elsewhere)
  await makeKey(other, elsewhere.database, 'aes256-gcm96')
})
