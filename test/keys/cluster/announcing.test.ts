import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Custody } from '../../../src/keys/custody.ts'
import { destroyKek } from '../../../src/keys/kek/kek.ts'
import { type Cluster, none, reopen, useCluster } from '../support.ts'

/** KEKs that were announced, and what a worker says of those that its token does not hold. */

let cluster: Cluster
useCluster('announcing', (begun) => {
  cluster = begun
})

const said: { kek?: string; msg: string }[] = []
const log = pino({ level: 'warn' }, { write: (line) => void said.push(JSON.parse(line)) })
const warnings = (id: string): string[] => said.filter(({ kek }) => kek === id).map(({ msg }) => msg)

async function round({ rotation }: Custody): Promise<void> {
  const lease = await cluster.place.database.jobLease(rotation.job.name, 30)
  if (lease === undefined) throw new Error('somebody else has the lease')
  await rotation.advance(none, lease.fence).finally(() => lease.release())
}

test('a KEK that is not made yet is waited for without a warning, and proven once it is there', async () => {
  using custody = await reopen(cluster.hsm, cluster.place, { log })
  const { id } = await custody.rotation.announce('export')
  const state = async () => (await custody.rotation.status()).find((kek) => kek.id === id)
  for (let turn = 0; turn < 3; turn++) await custody.rotation.prove()
  expect(warnings(id)).toEqual([])
  expect(await state()).toMatchObject({ state: 'pending', checkValue: '' })
  await round(custody)
  await custody.rotation.prove()
  expect(await state()).toMatchObject({ state: 'pending', unproven: [] })
  expect(warnings(id)).toEqual([])
  await round(custody)
  expect(await state()).toMatchObject({ state: 'active' })
})

test('a KEK that was made and is gone from this token is warned of, and not taken into use', async () => {
  using custody = await reopen(cluster.hsm, cluster.place, { log })
  const { id, ckaId } = await custody.rotation.announce('open')
  await round(custody)
  await destroyKek(cluster.hsm, ckaId)
  await custody.rotation.prove()
  expect(warnings(id)).toEqual(['a pending KEK could not be proven on this token'])
  await round(custody)
  expect((await custody.rotation.status()).find((kek) => kek.id === id)).toMatchObject({ state: 'pending' })
})
