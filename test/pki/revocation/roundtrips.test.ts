import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Revocations } from '../../../src/engines/pki/revocation/revocations.ts'
import { Line } from '../../store/line.ts'
import { type Bench, createBench, open, quiet } from '../../store/support.ts'

/** Counted in a process without caches, so that no polls are among the round trips. */

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench?.[Symbol.asyncDispose]())

test('a revocation takes two round trips, reads and writes with the COMMIT, and 64 take three', async () => {
  await using line = await Line.open(bench.url)
  await using database = await open(line.url, { poolSize: 1 })
  const revocations = new Revocations({ database, clock: systemClock, log: quiet })
  const [mount, crlIssuer] = [randomUUID(), randomBytes(32).toString('hex')]
  const revoke = () => {
    const names = { mount, site: 'default', serial: randomBytes(20).toString('hex'), issuer: randomUUID(), crlIssuer }
    return revocations.record({ ...names, notAfter: systemClock.wall(), reason: null })
  }
  const trips = async (count: number) => {
    const before = line.commands
    await Promise.all(Array.from({ length: count }, revoke))
    return line.commands - before
  }
  // Statements are prepared and the ledger is made only once.
  for (const count of [1, 1, 64]) await trips(count)
  expect(await trips(1)).toBeLessThanOrEqual(2)
  expect(await trips(64)).toBeLessThanOrEqual(3)
})
