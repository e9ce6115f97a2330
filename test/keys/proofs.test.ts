import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { proofTidying } from '../../src/keys/cluster/proofs.ts'
import { runJob } from '../auth/world.ts'
import { type Cluster, clock, useCluster } from './support.ts'

let cluster: Cluster
useCluster('proofs', (begun) => {
  cluster = begun
})

test('proofs of workers that have ended go after a day; those of registered workers stay however old', async () => {
  const { custody, place } = cluster
  const { database } = place
  const { id: kek } = await custody.rotation.announce('use')
  const hour = 3_600_000
  const proof = async (incarnation: string, hours: number) =>
    place.sql('INSERT INTO kek_proofs VALUES (?, ?, ?)', [kek, incarnation, clock.wall() - hours * hour])
  const [away, ...ended] = Array.from({ length: 150 }, () => randomUUID())
  if (away === undefined) throw new Error('none')
  for (const incarnation of ended) await proof(incarnation, 25)
  await proof(away, 23)
  await proof(database.incarnation, 10_000)
  const jobs = custody.jobs.filter(({ name }) => name === 'tidy KEK proofs')
  expect(jobs).toHaveLength(1)
  await runJob(database, proofTidying({ database, clock }))
  const left = await place.sql('SELECT incarnation FROM kek_proofs')
  expect(new Set(left.map(({ incarnation }) => incarnation))).toEqual(new Set([away, database.incarnation]))
})
