import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKK } from '../../../src/hsm/constants.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { adoptCluster, planAdoption } from '../../../src/keys/cluster/adoption.ts'
import type { KekStatus } from '../../../src/keys/cluster/rotation.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { initialise } from '../../../src/keys/initialise.ts'
import { componentCheckValue } from '../../../src/keys/kek/components.ts'
import { objectId } from '../../../src/keys/kek/identity.ts'
import { findKek, makeKek } from '../../../src/keys/kek/kek.ts'
import type { KekPurpose } from '../../../src/keys/tables.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { createToken, type TestToken } from '../../support/token.ts'
import { component, custodians } from '../custodians.ts'
import { initialising, none, openHsm, options, Place, reopen, undisturbed } from '../support.ts'

/** KEKs that custodians bring: what a run that was interrupted leaves, and what the next one makes of it. */

let hsm: Hsm
let second: TestToken
let third: TestToken
beforeAll(async () => {
  const token = await createTestedToken('adopting')
  // SoftHSM sees only the tokens that exist when it is initialised.
  second = await createToken('adopting-second')
  third = await createToken('adopting-third')
  hsm = await openHsm(token)
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

async function cluster(place: Place): Promise<Custody> {
  await initialise(initialising(hsm, place.database, { kek: { components: custodians } }))
  return reopen(hsm, place)
}

const foreign = { class: 'secret', keyType: CKK.AES, token: true, usages: [] } as const
const brought = [component(3), component(5)]
const checkValue = componentCheckValue(Buffer.alloc(32, 6)).toString('hex')
const pending = async (custody: Custody): Promise<KekStatus | undefined> =>
  (await custody.rotation.status()).find(({ state }) => state === 'pending')

/** Lets no check value of a KEK be stored, as a database that is out of reach. */
const refusing = `CREATE TRIGGER refusing BEFORE UPDATE ON keks FOR EACH ROW
  SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213`

async function interrupted(custody: Custody, place: Place): Promise<string> {
  const { id } = await custody.rotation.announce('export', 'components')
  await place.sql(refusing)
  await expect(custody.rotation.adopt(id, brought, undisturbed)).rejects.toMatchObject({ status: 503 })
  await place.sql('DROP TRIGGER refusing')
  expect(await pending(custody)).toMatchObject({ id, here: true, checkValue: '' })
  return id
}

test('a KEK that was made and not recorded is recorded by the next run, which can be repeated', async () => {
  await using place = await Place.fresh()
  using custody = await cluster(place)
  const id = await interrupted(custody, place)
  await custody.rotation.adopt(id, brought, undisturbed)
  expect(await pending(custody)).toMatchObject({ id, here: true, checkValue })
  await custody.rotation.adopt(id, brought, undisturbed)
  await custody.rotation.prove()
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  await custody.rotation.advance(none, lease?.fence ?? 0n)
  expect((await custody.rotation.status()).find((kek) => kek.id === id)?.state).toBe('active')
}, 60_000)

test('other components than those it was made from are refused in plain words, and nothing is recorded', async () => {
  await using place = await Place.fresh()
  using custody = await cluster(place)
  const id = await interrupted(custody, place)
  const other = componentCheckValue(Buffer.alloc(32, 1)).toString('hex')
  await expect(custody.rotation.adopt(id, [component(2), component(3)], undisturbed)).rejects.toMatchObject({
    status: 400,
    message: `the token holds the KEK ${id} with the check value ${checkValue}, these components make ${other}`,
  })
  expect(await pending(custody)).toMatchObject({ here: true, checkValue: '' })
  await custody.rotation.adopt(id, brought, undisturbed)
}, 60_000)

test('components that do not make a known KEK never reach the token', async () => {
  await using place = await Place.fresh()
  using custody = await cluster(place)
  const { id, ckaId } = await custody.rotation.announce('export', 'components')
  await custody.rotation.adopt(id, brought, undisturbed)
  const object = await findKek(hsm, ckaId)
  if (object === undefined) throw new Error('not made')
  await hsm.destroy(object)
  const made: unknown[] = []
  const watched = new Proxy(hsm, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: { token?: boolean }[]) => {
        if (name === 'create' && args[0]?.token) made.push(args[0])
        return value.apply(target, args)
      }
    },
  })
  await using elsewhere = await Place.at(place.url)
  using other = await reopen(watched, elsewhere)
  await expect(other.rotation.adopt(id, [component(2), component(3)], undisturbed)).rejects.toThrow(
    `its check value is ${checkValue}`,
  )
  expect(made).toEqual([])
  await other.rotation.adopt(id, brought, undisturbed)
  expect(made).toHaveLength(1)
}, 60_000)

test('a token that holds keys of another cluster is taken when that is said, one with keys of this cluster always', async () => {
  await using place = await Place.fresh()
  const custody = await cluster(place)
  const { rowKey } = custody.cluster
  custody.close()
  await using node = await openHsm(third)
  const { database } = place
  const plan = (shared: boolean) => planAdoption({ hsm: node, database }, { rowKey, shared })
  const { missing } = await plan(false)
  expect(missing).toHaveLength(4)
  // As an interrupted run leaves it, beside a key that is nobody's.
  for (const { id, ckaId, purpose } of missing.slice(0, 1)) {
    const name = purpose as KekPurpose
    await makeKek(node, { id, ckaId, purpose: name }, { components: custodians[name], strict: false })
  }
  await node.create({ ...foreign, value: Buffer.alloc(32, 1), id: Buffer.from('mine') })
  expect((await plan(false)).missing).toHaveLength(3)

  const other = '0b3c9ff2-7a51-4f0e-8a52-0b8f5b0f8a11'
  await node.create({ ...foreign, value: Buffer.alloc(32, 2), id: objectId(other, randomUUID()) })
  await expect(plan(false)).rejects.toThrow(
    `the token ${node.token.label} is not empty: it holds keys of cluster ${other} (--shared adopts beside them)`,
  )
  expect((await plan(true)).missing).toHaveLength(3)
}, 60_000)

test('a token remembers a cluster only once the announced KEKs of the dead token are to be made again', async () => {
  await using place = await Place.fresh()
  const custody = await cluster(place)
  const { rowKey } = custody.cluster
  await custody.rotation.announce('use')
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  await custody.rotation.advance(none, lease?.fence ?? 0n)
  expect(await pending(custody)).toMatchObject({ here: true, checkValue: expect.stringMatching(/./) })
  custody.close()

  await using node = await openHsm(second)
  await using elsewhere = await Place.at(place.url)
  const { database } = elsewhere
  const adoption = { rowKey, join: false, verify: async () => {} }
  const run = async (): Promise<Custody> => {
    const plan = await planAdoption({ hsm: node, database }, { rowKey, shared: true })
    const given = new Map(plan.missing.map(({ id, purpose }) => [id, custodians[purpose as KekPurpose]]))
    return adoptCluster({ ...options(node, database), adoption }, plan, given, undisturbed)
  }
  await place.sql(refusing)
  await expect(run().then(() => 'done')).rejects.toMatchObject({ status: 503 })
  await place.sql('DROP TRIGGER refusing')
  using adopted = await run()
  expect(await pending(adopted)).toMatchObject({ here: false, checkValue: '' })
}, 60_000)
