import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { killAtCommit } from '../../attack/killed.ts'
import { type Bench, createBench } from '../../store/support.ts'
import { newMount } from './world.ts'

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(() => bench?.[Symbol.asyncDispose]())

/**
 * Kills a process that stores two groups of 64 at the COMMIT of the second; returns the serials it had acknowledged.
 */
const die = (when: 'before' | 'after', mount: string): Promise<string[]> =>
  killAtCommit({ url: bench.url, when, nth: 2 }, (url) => [
    join(import.meta.dirname, 'fixtures/storing.ts'),
    ...[url, mount],
  ])

const serialsIn = async (sql: string, mount: string): Promise<string[]> =>
  (await bench.sql(sql, [mount])).map(({ serial }) => String(serial).toLowerCase()).toSorted()

test.each([
  ['before', 64],
  ['after', 128],
] as const)(
  'killed %s the COMMIT of a group: what was acknowledged is there, and every certificate with its lease',
  async (when, stored) => {
    const { uuid: mount } = newMount()
    const acknowledged = await die(when, mount)
    expect(acknowledged).toHaveLength(64)
    const certificates = await serialsIn('SELECT HEX(serial) AS serial FROM pki_certificates WHERE mount = ?', mount)
    expect(certificates).toHaveLength(stored)
    expect(certificates).toEqual(expect.arrayContaining(acknowledged))
    const leases = "SELECT SUBSTRING_INDEX(lease_id, '/', -1) AS serial FROM leases WHERE mount = ?"
    expect(await serialsIn(leases, mount)).toEqual(certificates)
    expect(await bench.database.tally(`certificates-${mount}-default`)).toBe(stored)
    const [rows] = await bench.sql('SELECT COUNT(*) AS n FROM leases')
    expect(await bench.database.tally('leases')).toBe(Number(rows?.n))
  },
)
