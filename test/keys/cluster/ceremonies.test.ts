import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { adoptingAlone } from '../../../src/ceremony/alone.ts'
import { systemClock as clock } from '../../../src/clock.ts'
import type { KekStatus } from '../../../src/keys/cluster/rotation.ts'
import { type Component, componentCheckValue } from '../../../src/keys/kek/components.ts'
import { objectsByCluster } from '../../../src/keys/kek/kek.ts'
import { type Cluster, log, none, undisturbed, useCluster } from '../support.ts'

/** Ceremonies after the first one, and the components that they take. */

let cluster: Cluster
useCluster('ceremonies', (begun) => {
  cluster = begun
})

/** The components of one ceremony: no two tests have the same. */
const ceremony = (): readonly Component[] =>
  [randomBytes(32), randomBytes(32)].map((bytes) => ({ bytes, checkValue: componentCheckValue(bytes) }))

const objects = async (): Promise<number> => [...(await objectsByCluster(cluster.hsm)).values()].flat().length

async function stateOf(id: string): Promise<KekStatus | undefined> {
  return (await cluster.custody.rotation.status()).find((kek) => kek.id === id)
}

/** Announces a KEK and takes it into use. */
async function inUse(components: readonly Component[]): Promise<string> {
  const { rotation } = cluster.custody
  const { id } = await rotation.announce('export', 'components')
  await rotation.adopt(id, components, undisturbed)
  await rotation.prove()
  const lease = await cluster.place.database.jobLease(rotation.job.name, 30)
  await rotation.advance(none, lease?.fence ?? 0n).finally(() => lease?.release())
  expect(await stateOf(id)).toMatchObject({ state: 'active' })
  return id
}

test('a new KEK is not made of the components of two ceremonies, nor of those of one before', async () => {
  const { rotation } = cluster.custody
  const [first, second] = [ceremony(), ceremony()]
  const before = await inUse(first)
  const { id } = await rotation.announce('export', 'components')
  const made = await objects()
  for (const given of [first, [...first, ...second], [second[0], ...first].filter((one) => one !== undefined)]) {
    await expect(rotation.adopt(id, given, undisturbed)).rejects.toMatchObject({
      status: 400,
      message: `these components make the active export KEK ${before}: a new one is made of its own ceremony's alone`,
    })
  }
  expect([await objects(), (await stateOf(id))?.checkValue]).toEqual([made, ''])
  await rotation.adopt(id, second, undisturbed)
  // Again, with all that there is: the KEK is known now.
  await rotation.adopt(id, [...first, ...second], undisturbed)
  await expect(rotation.adopt(id, first, undisturbed)).rejects.toThrow('these components do not make the KEK')
  await rotation.destroy(id, 0)
})

test('a KEK that is generated in the token takes no components', async () => {
  const { rotation } = cluster.custody
  const { id } = await rotation.announce('open')
  const made = await objects()
  const refusal = `the pending open KEK ${id} is generated in the token: no components make it`
  await expect(rotation.adopt(id, ceremony(), undisturbed)).rejects.toMatchObject({ status: 400, message: refusal })
  expect(await objects()).toBe(made)
  await rotation.destroy(id, 0)
})

test('a KEK that was given up is not made again, and needs no newer dumps however often it is destroyed', async () => {
  const { rotation } = cluster.custody
  const { id } = await rotation.announce('export', 'components')
  for (let times = 0; times < 2; times++) expect(await rotation.destroy(id, 0)).toEqual({ dumpsUsableSince: undefined })
  const made = await objects()
  await expect(rotation.adopt(id, ceremony(), undisturbed)).rejects.toMatchObject({
    status: 400,
    message: `the KEK ${id} is abandoned`,
  })
  expect([await objects(), (await stateOf(id))?.state]).toEqual([made, 'abandoned'])
})

test('a KEK that is given up while it is brought leaves nothing in the token', async () => {
  const { rotation } = cluster.custody
  const { id } = await rotation.announce('export', 'components')
  const made = await objects()
  const [brought, givenUp] = await Promise.allSettled([
    rotation.adopt(id, ceremony(), undisturbed),
    rotation.destroy(id, 200),
  ])
  expect(givenUp.status).toBe('fulfilled')
  expect([await objects(), (await stateOf(id))?.state], brought.status).toEqual([made, 'abandoned'])
})

test('a KEK that was destroyed is not made again, and destroyed twice it still says which dumps are useless', async () => {
  const { rotation } = cluster.custody
  const components = ceremony()
  const old = await inUse(components)
  await inUse(ceremony())
  const made = await objects()
  for (let times = 0; times < 2; times++) {
    expect(await rotation.destroy(old, 0)).toEqual({ dumpsUsableSince: expect.any(Number) })
    expect(await objects()).toBe(made - 1)
  }
  await expect(rotation.adopt(old, components, undisturbed)).rejects.toMatchObject({
    status: 400,
    message: `the KEK ${old} is destroyed`,
  })
  expect(await objects()).toBe(made - 1)
})

test('a run whose lease has passed to another while it was stopped makes nothing', async () => {
  const { custody, hsm, place } = cluster
  const { database } = place
  const { id } = await custody.rotation.announce('export', 'components')
  const made = await objects()
  await adoptingAlone({ clock, database, hsm, log }, async (alone) => {
    await alone()
    await place.sql('UPDATE job_leases SET expires_at = 0 WHERE name = ?', [`kek adopt ${hsm.token.serial}`])
    const other = await database.jobLease(`kek adopt ${hsm.token.serial}`, 15)
    expect(other).toBeDefined()
    await expect(custody.rotation.adopt(id, ceremony(), alone)).rejects.toThrow('was taken over')
    await other?.release()
  })
  expect([await objects(), (await stateOf(id))?.checkValue]).toEqual([made, ''])
  await custody.rotation.destroy(id, 0)
})

test('the sheets of a KEK that was given up make the next one', async () => {
  const { rotation } = cluster.custody
  const sheets = ceremony()
  const first = await rotation.announce('export', 'components')
  await rotation.adopt(first.id, sheets, undisturbed)
  await rotation.destroy(first.id, 0)
  expect(await stateOf(first.id)).toMatchObject({ state: 'abandoned', here: false })
  const second = await rotation.announce('export', 'components')
  await rotation.adopt(second.id, sheets, undisturbed)
  const [one, other] = [await stateOf(first.id), await stateOf(second.id)]
  expect(other).toMatchObject({ state: 'pending', here: true, checkValue: one?.checkValue })
  await rotation.destroy(second.id, 0)
})
