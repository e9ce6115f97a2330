import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Revocations } from '../../../src/engines/pki/revocation/revocations.ts'
import { revocationTally } from '../../../src/engines/pki/revocation/tables.ts'
import { killAtCommit } from '../../attack/killed.ts'
import { type Bench, createBench, quiet } from '../../store/support.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench?.[Symbol.asyncDispose]())

/**
 * Kills a process that revokes two groups of 64 at the COMMIT of the second; returns the serials it had acknowledged.
 */
const die = (when: 'before' | 'after', mount: string, crlIssuer: string): Promise<string[]> =>
  killAtCommit({ url: bench.url, when, nth: 2 }, (url) => [
    join(import.meta.dirname, 'fixtures/revoking.ts'),
    ...[url, mount, crlIssuer],
  ])

test.each([
  ['before', 64],
  ['after', 128],
] as const)(
  'killed %s the COMMIT of a group: what was acknowledged is recorded, numbers have no gap, and go on',
  async (when, recorded) => {
    const [mount, crlIssuer] = [randomUUID(), randomBytes(32).toString('hex')]
    const acknowledged = await die(when, mount, crlIssuer)
    expect(acknowledged).toHaveLength(64)
    const rows = await bench.sql(
      'SELECT LOWER(HEX(serial)) AS serial, seq FROM pki_revocations WHERE mount = ? ORDER BY seq',
      [mount],
    )
    expect(rows.map(({ serial }) => String(serial))).toEqual(expect.arrayContaining(acknowledged))
    expect(rows.map(({ seq }) => Number(seq))).toEqual(Array.from({ length: recorded }, (_, index) => index + 1))
    const { database } = bench
    expect(await database.tally(revocationTally(mount, 'default'))).toBe(recorded)
    const revocations = new Revocations({ database, clock: systemClock, log: quiet })
    const next = {
      mount,
      site: 'default',
      serial: 'aabb',
      issuer: '',
      crlIssuer,
      notAfter: systemClock.wall(),
      reason: null,
    }
    expect((await revocations.record(next)).seq).toBe(recorded + 1)
  },
)
