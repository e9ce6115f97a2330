import { expect, test } from 'vitest'
import { tidyJob } from '../../src/leases/jobs.ts'
import { createLog } from '../../src/log.ts'
import { DamagedRow } from '../../src/store/faults.ts'
import { runJob } from '../auth/world.ts'
import { createLeaseWorld } from './world.ts'

test('tidy spares the leases of a token that cannot be verified, and stops when tokens cannot be read at all', async () => {
  await using world = await createLeaseWorld(1)
  const { database, issue, token } = world.node
  const [living, damaged, gone] = [(await token()).row, (await token()).row, (await token()).row]
  for (const [row, what] of [
    [living, 'kept'],
    [damaged, 'spared'],
    [gone, 'lost'],
  ] as const)
    await issue(row, what)
  const taken: unknown[] = []
  const revokeInEngine = async (_: string, { what }: Readonly<Record<string, unknown>>) => void taken.push(what)
  const deps = { database, clock: world.clock, log: createLog('silent'), revokeInEngine }
  const left = async () => (await world.sql('SELECT token FROM leases')).map((row) => String(row.token)).toSorted()

  const unreadable = tidyJob(deps, () => Promise.reject(new Error('the database is away')))
  await expect(runJob(database, unreadable)).rejects.toThrow('the database is away')
  expect(taken).toEqual([])

  const alive = async (id: string) => {
    if (id === damaged.id) throw new DamagedRow('tokens', id, 'the seal is broken')
    return id === living.id
  }
  await runJob(database, tidyJob(deps, alive))
  expect([taken, await left()]).toEqual([['lost'], [living.id, damaged.id].toSorted()])
})
