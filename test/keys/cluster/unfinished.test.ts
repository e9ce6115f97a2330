import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { Custody } from '../../../src/keys/custody.ts'
import { initialise } from '../../../src/keys/initialise.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { initialising, openHsm, options, Place } from '../support.ts'

/** A cluster whose initialisation did not come to its end. */

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('unfinished'))
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

test('is not opened by anybody but the initialisation, which finishes it', async () => {
  await using place = await Place.fresh()
  const { database } = place
  const populate = () => Promise.reject(new Error('no mounts today'))
  await expect(initialise(initialising(hsm, database, { populate }))).rejects.toThrow('no mounts today')
  for (const more of [{}, { acceptRestore: true }, { acceptRestore: true, beginEpoch: true }]) {
    const opening = Custody.open(options(hsm, database, more)).then((custody) => custody.close())
    await expect(opening).rejects.toThrow('was not finished: run strongroom init again')
  }
  await initialise(initialising(hsm, database))
  using custody = await Custody.open(options(hsm, database))
  expect(custody.cluster.epoch).toBe(1)
})
