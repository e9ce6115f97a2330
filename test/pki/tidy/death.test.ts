import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { openHold } from '../../attack/hold.ts'
import { addIssuer, createTidyWorld, ended, fresh, hours, revoke, type TidyWorld } from './world.ts'

let world: TidyWorld
beforeAll(async () => {
  world = await createTidyWorld()
})
afterAll(() => world?.[Symbol.asyncDispose]())

/** Kills a process that tidies, at its nth COMMIT. */
async function die(when: 'before' | 'after', nth: number, mount: string): Promise<void> {
  await using line = await openHold(world.bench.url)
  const trapped = line.trap(when, nth)
  const file = join(import.meta.dirname, 'fixtures/tidying.ts')
  const child = spawn(process.execPath, [file, line.url, mount, world.bench.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await trapped
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

const count = async (table: string, mount: string): Promise<number> =>
  Number((await world.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE mount = ?`, [mount]))[0]?.n)

let last = 0

test.each([
  ['before', 2],
  ['after', 4],
  ['before', 8],
  ['after', 8],
] as const)(
  'killed %s its COMMIT %i, a run ends on another worker as if nothing had been',
  async (when, nth) => {
    const { node, clock } = world
    const mount = await world.mount()
    const issuer = await addIssuer(node, mount, clock.wall() + 9000 * hours)
    const old = Array.from({ length: 40 }, (_, n) => fresh(mount, issuer, clock.wall() - (n + 80) * hours))
    const living = fresh(mount, issuer, clock.wall() + hours)
    await Promise.all([...old, living].map((one) => node.certificates.store(one)))
    await revoke(node, [...old, living], { first: last + 1 })
    last += 41
    const order = { ...defaultOrder, certStore: true, revokedCerts: true, safetyBuffer: 1, pageSize: 10 }
    const begun = await node.tidying.runs.begin(mount, order, false)
    await die(when, nth, mount)
    const interrupted = await node.tidying.runs.find(mount)
    expect(interrupted).toMatchObject({ id: begun?.id, state: 'Running' })
    // Its supervisor releases its leases.
    const [lease] = await world.sql('SELECT holder FROM job_leases WHERE name = ?', [
      `tidy of mount ${mount} of site default`,
    ])
    await node.database.forget([String(lease?.holder)])
    await node.tidying.upkeep.run(new AbortController().signal, 1n)
    const run = await ended(node, mount)
    expect(run).toMatchObject({ id: begun?.id, state: 'Finished', error: null })
    expect(run.counts).toMatchObject({ certStoreDeleted: 40, revokedCertDeleted: 40 })
    expect([await count('pki_certificates', mount), await count('pki_revocations', mount)]).toEqual([1, 1])
    expect([await node.certificates.count(mount), await node.certificates.countRevoked(mount)]).toEqual([1, 1])
    expect(await node.lists.left(mount)).toEqual([last])
  },
  90_000,
)
