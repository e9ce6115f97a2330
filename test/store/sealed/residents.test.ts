import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { pairAlgorithm } from '../../../src/keys/algorithms.ts'
import { Residents } from '../../../src/keys/making/residents.ts'
import type { Database } from '../../../src/store/database.ts'
import { createBench, quiet, randomName } from '../support.ts'

const countedIn = async () => {
  throw new Error('counted in')
}
/** A token that makes nothing: a key that was counted in is known by that. */
const broken = (serial: string): Hsm => ({ token: { serial }, create: countedIn, find: countedIn }) as unknown as Hsm

const nothing = async () => {}

/** Begins to make a key in the token. @returns why it ended */
function make(database: Database, serial: string, limit: number): Promise<string> {
  const memory = { list: async () => [], add: nothing, remove: nothing }
  const more = { clock: systemClock, log: quiet, cluster: randomUUID(), limit, tombstones: memory }
  const residents = new Residents({ hsm: broken(serial), database, ...more })
  const algorithm = pairAlgorithm('ecdsa-p256')
  if (algorithm === undefined) throw new Error('no such algorithm')
  const key = { material: randomUUID(), part: 'key', given: undefined } as const
  return residents.make(algorithm, key).then(
    () => 'made',
    ({ message }: Error) => message,
  )
}

test('the last place in a token goes to one key, through several connections, on different nodes if there are several', async () => {
  await using bench = await createBench()
  const databases = [await bench.another(), await bench.another(), await bench.another()]
  for (let round = 0; round < 10; round++) {
    const serial = randomName()
    const ends = await Promise.all(databases.map((database) => make(database, serial, 1)))
    // On a cluster a loser may be told that the database is busy, which says nothing of the token.
    const expected = expect.stringMatching(/^(counted in|the HSM already holds 1 keys|the database is busy)/)
    expect(ends).toEqual(ends.map(() => expected))
    expect(ends.filter((end) => end === 'counted in')).toHaveLength(1)
  }
})
