import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { defaultOrder } from '../../../src/engines/pki/tidy/settings.ts'
import { Tidying } from '../../../src/engines/pki/tidy/tidying.ts'
import { createLog } from '../../../src/log.ts'
import { LeaseLost } from '../../../src/store/faults.ts'
import { runJob } from '../../auth/world.ts'
import { addIssuer, createTidyWorld, ended, fresh, hours, type TidyWorld, tidy } from './world.ts'

let world: TidyWorld
beforeAll(async () => {
  world = await createTidyWorld(2)
})
afterAll(() => world?.[Symbol.asyncDispose]())

const order = { ...defaultOrder, certStore: true, safetyBuffer: 1 }

/** A mount with certificates that have ended. */
async function authority(count: number) {
  const { node, clock } = world
  const mount = await world.mount()
  const issuer = await addIssuer(node, mount, clock.wall() + 9000 * hours)
  const old = Array.from({ length: count }, (_, n) => fresh(mount, issuer, clock.wall() - (n + 80) * hours))
  await Promise.all(old.map((one) => node.certificates.store(one)))
  return mount
}

const upkeep = async () => runJob(world.node.database, world.node.tidying.upkeep)

describe('a run', () => {
  test('is one of its mount, however many workers begin it at once', async () => {
    const mount = await authority(30)
    // Longer than the latest of them takes to ask: another one may begin when the first has ended.
    const long = { ...order, pauseDuration: 0.05 }
    const begun = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (world.nodes[n % 2] ?? world.node).tidying.begin(mount, long)),
    )
    expect(begun.filter((run) => run !== undefined)).toHaveLength(1)
    expect((await ended(world.node, mount)).counts.certStoreDeleted).toBe(30)
  })

  test('can begin as soon as the previous one has ended, on another worker too', async () => {
    const mount = await authority(1)
    for (let n = 0; n < 6; n++) {
      const node = world.nodes[n % 2] ?? world.node
      expect((await tidy(node, mount, { certStore: true })).state).toBe('Finished')
    }
  })

  test('is cancelled from any worker, with its counts until then', async () => {
    const mount = await authority(30)
    const other = world.nodes[1] ?? world.node
    await world.node.tidying.begin(mount, { ...order, pauseDuration: 0.1 })
    while ((await other.tidying.runs.find(mount))?.checked === 0) await delay(10)
    expect((await other.tidying.runs.cancel(mount))?.state).toBe('Cancelling')
    const run = await ended(world.node, mount)
    expect(run).toMatchObject({ state: 'Cancelled', error: null, message: null })
    expect(run.finishedAt).not.toBeNull()
    expect(run.counts.certStoreDeleted).toBeGreaterThan(0)
    expect(run.counts.certStoreDeleted).toBeLessThan(30)
    expect(await world.node.certificates.count(mount)).toBe(30 - run.counts.certStoreDeleted)
    expect(await other.tidying.runs.cancel(mount)).toBeUndefined()
  })

  test('that was taken over changes nothing more', async () => {
    const mount = await authority(1)
    const { runs } = world.node.tidying
    const run = await runs.begin(mount, order, false)
    const lease = await world.node.database.jobLease('taken over', 60)
    if (run === undefined || lease === undefined) throw new Error('nothing began')
    const stale = { job: 'taken over', fence: lease.fence - 1n }
    await expect(runs.advance(mount, run, stale, async () => ({ checked: 1 }))).rejects.toBeInstanceOf(LeaseLost)
    await expect(runs.finish(mount, run, stale)).rejects.toBeInstanceOf(LeaseLost)
    expect(await runs.find(mount)).toEqual(run)
  })

  test('continues the counts of a version that had fewer of them', async () => {
    const mount = await authority(1)
    const { runs } = world.node.tidying
    const run = await runs.begin(mount, order, false)
    const lease = await world.node.database.jobLease(`of ${mount}`.slice(0, 40), 60)
    if (run === undefined || lease === undefined) throw new Error('nothing began')
    await world.sql("UPDATE pki_tidies SET status = JSON_REMOVE(status, '$.counts.fixedIssuers') WHERE mount = ?", [
      mount,
    ])
    const claim = { job: `of ${mount}`.slice(0, 40), fence: lease.fence }
    const after = await runs.advance(mount, run, claim, async () => ({ counts: { fixedIssuers: 2 } }))
    expect(after.counts).toEqual({ ...run.counts, fixedIssuers: 2 })
  })

  test('that fails shows the reason, and another may begin', async () => {
    const mount = await authority(1)
    const { authorities } = world.node
    await authorities.change({ uuid: mount }, async () => ({ result: undefined }))
    await world.sql('UPDATE pki_authorities SET residence = ? WHERE mount = ?', ['forged', mount])
    const run = await tidy(world.node, mount, { certStore: true })
    expect(run).toMatchObject({ state: 'Error', error: expect.stringContaining('pki_authorities') })
    await world.sql('UPDATE pki_authorities SET residence = ? WHERE mount = ?', ['wrapped', mount])
    expect((await tidy(world.node, mount, { certStore: true })).counts.certStoreDeleted).toBe(1)
  })

  test('that cannot be started now is logged, and begun by the upkeep', async () => {
    const mount = await authority(1)
    const log = createLog('silent')
    const warn = vi.spyOn(log, 'warn')
    const err = new Error('no job can be started')
    const tidying = new Tidying({ ...world.node, log, start: () => Promise.reject(err) })
    expect(await tidying.begin(mount, order)).toMatchObject({ state: 'Running' })
    await vi.waitFor(() =>
      expect(warn).toHaveBeenCalledWith({ err, mount }, expect.stringContaining('within a minute')),
    )
    await upkeep()
    expect((await ended(world.node, mount)).counts.certStoreDeleted).toBe(1)
  })

  test('does not begin in a mount that was removed', async () => {
    const { tidying } = world.node
    expect(await tidying.begin('44444444-4444-7444-8444-444444444444', order)).toBeUndefined()
  })
})

describe('automatic tidying', () => {
  test('begins when it is enabled, then an interval after the last run has ended', async () => {
    const mount = await authority(2)
    const { node, clock } = world
    await node.configure(mount, { ...order, enabled: false, intervalDuration: 3600 })
    await upkeep()
    expect(await node.tidying.runs.find(mount)).toBeUndefined()
    await node.configure(mount, { ...order, enabled: true, intervalDuration: 3600 })
    await upkeep()
    const first = await ended(node, mount)
    expect(first).toMatchObject({ automatic: true, state: 'Finished', lastAutomaticAt: first.finishedAt })
    expect(first.counts.certStoreDeleted).toBe(2)
    clock.ahead += hours - 60_000
    await upkeep()
    expect((await node.tidying.runs.find(mount))?.id).toBe(first.id)
    clock.ahead += 60_000
    await upkeep()
    const second = await ended(node, mount)
    expect(second.id).not.toBe(first.id)
    const byHand = await tidy(node, mount, { certStore: true })
    expect(byHand).toMatchObject({ automatic: false, lastAutomaticAt: second.lastAutomaticAt })
    clock.ahead -= hours
  })

  test('goes by verified settings, and a mount whose settings were edited keeps no other from it', async () => {
    const [edited, sound] = [await authority(1), await authority(1)]
    for (const mount of [edited, sound]) await world.node.configure(mount, { ...order, enabled: true })
    await world.sql('UPDATE pki_authorities SET tidy = REPLACE(tidy, ?, ?) WHERE mount = ?', [
      '"safetyBuffer":1',
      '"safetyBuffer":2',
      edited,
    ])
    await upkeep()
    expect((await ended(world.node, sound)).counts.certStoreDeleted).toBe(1)
    expect(await world.node.tidying.runs.find(edited)).toBeUndefined()
  })
})
