import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { planAdoption, planRepair } from '../../../src/keys/cluster/adoption.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { initialise } from '../../../src/keys/initialise.ts'
import type { KekPurpose } from '../../../src/keys/tables.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { createToken, type TestToken } from '../../support/token.ts'
import { custodians } from '../custodians.ts'
import { initialising, none, openHsm, Place, reopen, undisturbed } from '../support.ts'

/** What a new token needs of a cluster whose KEKs came from components. */

let hsm: Hsm
let second: TestToken
beforeAll(async () => {
  const token = await createTestedToken('planning')
  // SoftHSM sees only the tokens that exist when it is initialised.
  second = await createToken('planning-second')
  hsm = await openHsm(token)
}, 60_000)
afterAll(() => hsm?.[Symbol.asyncDispose]())

/** Replaces a KEK by one that is generated in the token. */
async function generate({ rotation }: Custody, place: Place, purpose: KekPurpose): Promise<string> {
  const { id } = await rotation.announce(purpose)
  for (let turn = 0; turn < 2; turn++) {
    const lease = await place.database.jobLease(rotation.job.name, 30)
    await rotation.advance(none, lease?.fence ?? 0n)
    await lease?.release()
    await rotation.prove()
  }
  expect((await rotation.status()).find((kek) => kek.id === id)?.state).toBe('active')
  return id
}

test('one active KEK that was born in the dead token is enough for nothing to be adopted', async () => {
  await using place = await Place.fresh()
  const { database } = place
  await initialise(initialising(hsm, database, { kek: { components: custodians } }))
  using custody = await reopen(hsm, place)
  const { rowKey } = custody.cluster
  await using node = await openHsm(second)
  const plan = () => planAdoption({ hsm: node, database }, { rowKey, shared: false })
  const [kek] = (await custody.rotation.status()).filter(({ purpose }) => purpose === 'use')
  await expect(planRepair({ hsm: node, database }, kek?.id ?? '')).rejects.toThrow('remembers nothing of this cluster')
  expect((await planRepair({ hsm, database }, kek?.id ?? '')).missing).toEqual([])
  const { missing, lost } = await plan()
  expect([missing.length, lost.length]).toEqual([4, 0])
  const first = await generate(custody, place, 'export')
  await expect(plan()).rejects.toThrow(`no components make the active export KEK ${first}: born in a token`)
  const next = await generate(custody, place, 'open')
  await expect(plan()).rejects.toThrow(/^no components make the active \w+ KEK \S+ and the active \w+ KEK \S+:/)
  await expect(plan()).rejects.toThrow(next)
}, 60_000)

test('a retired KEK is needed while a key of the service itself is under it', async () => {
  await using place = await Place.fresh()
  const { database } = place
  await initialise(initialising(hsm, database, { kek: { components: custodians } }))
  using custody = await reopen(hsm, place)
  const { rotation, cluster } = custody
  const { id } = await rotation.announce('system', 'components')
  await rotation.adopt(id, custodians.use, undisturbed)
  await rotation.prove()
  const lease = await database.jobLease(rotation.job.name, 30)
  await rotation.advance(none, lease?.fence ?? 0n)
  await rotation.advance(none, lease?.fence ?? 0n)
  await lease?.release()
  const retired = (await rotation.status()).find(({ state }) => state === 'retiring')
  await using node = await openHsm(second)
  const missing = async () => {
    const plan = await planAdoption({ hsm: node, database }, { rowKey: cluster.rowKey, shared: true })
    return plan.missing.map((kek) => kek.id)
  }
  expect(await missing()).toHaveLength(4)
  expect(await missing()).not.toContain(retired?.id)
  await place.sql("UPDATE system_keys SET kek = ? WHERE purpose = 'rows'", [retired?.id ?? ''])
  expect(await missing()).toContain(retired?.id)
}, 60_000)
