import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKR } from '../../../src/hsm/constants.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { PairAlgorithm } from '../../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../src/keys/algorithms.ts'
import { makeResident } from '../../../src/keys/making/making.ts'
import { createShim, group, type Shim } from '../../hsm/support/fault.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { openHsm } from '../support.ts'

let shim: Shim
let hsm: Hsm

beforeAll(async () => {
  const token = await createTestedToken('making')
  shim = await createShim(token.library)
  hsm = await openHsm({ ...token, library: shim.library })
}, 60_000)
afterAll(async () => {
  await hsm?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})

const ec = algorithmOf('ecdsa-p256') as PairAlgorithm
const make = () => makeResident(hsm, ec, randomBytes(16), 'key')
const publicHalves = async (): Promise<number> => (await hsm.find({ class: 'public', token: false })).length

test('no public half of a pair that stays in the token is left in the session, whichever call fails', async () => {
  shim.set({ groups: group.object, times: 0 })
  await make()
  // The last one destroys the public half.
  const calls = shim.read().counted - 1
  expect(calls).toBeGreaterThan(2)
  expect(await publicHalves()).toBe(0)
  for (let nth = 1; nth <= calls; nth++) {
    shim.set({ groups: group.object, rv: CKR.GENERAL_ERROR, every: nth, times: 1 })
    await expect(make(), `call ${nth}`).rejects.toThrow()
    shim.clear()
    expect(await publicHalves(), `call ${nth}`).toBe(0)
  }
})
