import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { destroyKek } from '../../../src/keys/kek/kek.ts'
import type { Material } from '../../../src/keys/material.ts'
import { type KekPurpose, keksTable, materialsTable } from '../../../src/keys/tables.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { makeKey, none, openCluster, openHsm, Place, reopen } from '../support.ts'

/** Keys that cannot be rewrapped keep no others from it. */

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('rewrapping'))
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

async function round(custody: Custody, place: Place): Promise<void> {
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  if (lease === undefined) throw new Error('somebody else has the lease')
  await custody.rotation.advance(none, lease.fence).finally(() => lease.release())
}

async function retiring(custody: Custody, wanted: KekPurpose) {
  const found = (await custody.rotation.status()).find(
    ({ purpose, state }) => purpose === wanted && state === 'retiring',
  )
  if (found === undefined) throw new Error(`no ${wanted} KEK retires`)
  return found
}

/** Announces new KEKs of these purposes, and puts them in the place of the old ones. */
async function replace(custody: Custody, place: Place, ...purposes: readonly KekPurpose[]): Promise<void> {
  for (const purpose of purposes) await custody.rotation.announce(purpose)
  await round(custody, place)
  await custody.rotation.prove()
  await round(custody, place)
}

/** More than a page of keys under the KEK `use`, the oldest first, and one under `export`, whose turn comes later. */
async function makeKeys(custody: Custody, place: Place): Promise<Material[]> {
  const keys: Material[] = []
  for (let count = 0; count < 60; count++) keys.push(await makeKey(custody, place.database, 'aes128-gcm96'))
  keys.push(await makeKey(custody, place.database, 'aes128-gcm96', { exportable: true }))
  return keys
}

/** Writes a well-sealed row with a blob that no KEK opens. */
const spoil = (place: Place, { id }: Material): Promise<unknown> =>
  place.database.transaction(async (tx) => {
    const table = place.database.table(materialsTable)
    const row = await table.get(tx, id)
    if (row === undefined) throw new Error('lost')
    await table.update(tx, row, { blob: randomBytes(row.blob?.length ?? 0) })
  })

const edit = (place: Place, { id }: Material) =>
  place.sql("UPDATE materials SET created_by = 'another' WHERE id = ?", [id])

test.each([
  ['that was edited in SQL', edit],
  ['that the token refuses', spoil],
])(
  'a key %s is reported in every round, and all others are rewrapped',
  async (_, damage) => {
    await using place = await Place.fresh()
    using custody = await openCluster(hsm, place)
    const [first, ...rest] = await makeKeys(custody, place)
    if (first === undefined) throw new Error('lost')
    await replace(custody, place, 'use', 'export')
    await damage(place, first)
    for (let turn = 0; turn < 2; turn++) {
      await expect(round(custody, place)).rejects.toThrow(`cannot go, 1 key stays under it: ${first.id}`)
      expect((await retiring(custody, 'use')).keys).toBe(1)
      expect((await retiring(custody, 'export')).keys).toBe(0)
    }
    for (const key of rest) {
      custody.objects.handles.drop(key.id)
      const material = await custody.materials.fetch(key.id)
      await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('plain') })
    }
    await expect(custody.rotation.destroy((await retiring(custody, 'use')).id, 0)).rejects.toThrow(
      '1 keys are still under',
    )
    await custody.rotation.destroy((await retiring(custody, 'export')).id, 0)
  },
  60_000,
)

test('a retired KEK that this token never got is no fault once nothing is under it', async () => {
  await using place = await Place.fresh()
  using custody = await openCluster(hsm, place)
  const key = await makeKey(custody, place.database, 'aes128-gcm96')
  await replace(custody, place, 'use')
  await round(custody, place)
  const old = await retiring(custody, 'use')
  expect(old.keys).toBe(0)
  const kek = await place.database.read((q) => place.database.table(keksTable).get(q, old.id))
  if (kek === undefined) throw new Error('lost')
  await destroyKek(hsm, kek.ckaId)
  using later = await reopen(hsm, place)
  await round(later, place)
  await place.sql('UPDATE materials SET kek = ? WHERE id = ?', [old.id, key.id])
  await expect(round(later, place)).rejects.toThrow(`the use KEK ${old.id} is not in the token`)
}, 60_000)
