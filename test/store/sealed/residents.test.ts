import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { pairAlgorithm } from '../../../src/keys/algorithms.ts'
import { Residents } from '../../../src/keys/making/residents.ts'
import type { Database } from '../../../src/store/database.ts'
import { openHsm } from '../../keys/support.ts'
import { createToken } from '../../support/token.ts'
import { createBench, quiet } from '../support.ts'

const nothing = async () => {}

/** Makes a key in the token, or is refused. @returns the refusal */
function make(database: Database, hsm: Hsm, limit: number): Promise<string> {
  const tombstones = { list: async () => [], add: nothing, remove: nothing }
  const residents = new Residents({
    ...{ hsm, database, clock: systemClock, log: quiet, cluster: randomUUID(), limit, tombstones },
  })
  const algorithm = pairAlgorithm('ecdsa-p256')
  if (algorithm === undefined) throw new Error('no such algorithm')
  return residents.make(algorithm, { material: randomUUID(), part: 'key', given: undefined }).then(
    () => 'made',
    ({ message }: Error) => message,
  )
}

test('the last place in a token goes to one key, through several connections, on different nodes if there are several', async () => {
  await using bench = await createBench()
  const databases = [await bench.another(), await bench.another(), await bench.another()]
  await using hsm = await openHsm(await createToken('residents'))
  for (let limit = 1; limit <= 10; limit++) {
    const ends = await Promise.all(databases.map((database) => make(database, hsm, limit)))
    // On a cluster a loser may be told that the database is busy, which says nothing of the token.
    const expected = expect.stringMatching(/^(made$|the HSM already holds \d+ keys|the database is busy)/)
    expect(ends).toEqual(ends.map(() => expected))
    expect(ends.filter((end) => end === 'made')).toHaveLength(1)
  }
})
