import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Retirement } from '../../../src/engines/pki/crl/retirement.ts'
import { MovableClock, runJob } from '../../auth/world.ts'
import { useWorker } from './worker.ts'
import { hour, serialsOf } from './world.ts'

const worker = useWorker('crlremoval')

const build = async (more: Parameters<typeof worker.build>[0] = {}) => (await worker.build(more)).complete.serials
const remove = () => worker.node.builder.removeEntries(worker.ca.crlIssuer, 'default', () => true)
const segments = async () => (await worker.manifest()).sites.default?.segments ?? []
/** Revocations of certificates that end in an hour, then of others. */
async function revokeBoth(ending: number, lasting: number) {
  const first = await worker.revoke(ending, { notAfter: worker.node.clock.wall() + hour })
  return { ending: first, lasting: lasting > 0 ? await worker.revoke(lasting) : [] }
}

describe('an entry whose certificate has expired leaves', () => {
  test('only after a complete list that was made past the expiry carried it', async () => {
    const { ending, lasting } = await revokeBoth(3, 2)
    await build()
    worker.node.clock.ahead = 2 * hour
    const early = await remove()
    expect(early.removed).toBe(0)
    expect(ending.map((row) => early.has({ seq: row.seq ?? 0, notAfter: row.notAfter }))).toEqual([false, false, false])
    expect(await build()).toEqual(serialsOf([...ending, ...lasting]))
    const { removed, has } = await remove()
    expect(removed).toBe(3)
    expect(ending.every((row) => has({ seq: row.seq ?? 0, notAfter: row.notAfter }))).toBe(true)
    expect(lasting.some((row) => has({ seq: row.seq ?? 0, notAfter: row.notAfter }))).toBe(false)
    expect(await build()).toEqual(serialsOf(lasting))
    expect(worker.node.alarms).toEqual([])
  })

  test('not before every list that is out has carried it: of another mount, or of all sites', async () => {
    await revokeBoth(1, 0)
    const other = randomUUID()
    await build({ mount: other })
    await build({ scope: 'unified' })
    worker.node.clock.ahead = 2 * hour
    await build()
    expect((await remove()).removed).toBe(0)
    await build({ mount: other })
    expect((await remove()).removed).toBe(0)
    await build({ scope: 'unified' })
    expect((await remove()).removed).toBe(1)
  })

  test('whatever lists ran out long ago, and lists that are disabled', async () => {
    await revokeBoth(1, 0)
    await build({ mount: randomUUID(), expiryMilliseconds: hour })
    await build({ mount: randomUUID(), disabled: true })
    worker.node.clock.ahead = 3 * hour
    await build()
    expect((await remove()).removed).toBe(1)
  })

  test('when it is wanted, and not before it was taken in', async () => {
    await revokeBoth(4, 0)
    worker.node.clock.ahead = 2 * hour
    await build()
    const late = await worker.revoke(1, { notAfter: worker.node.clock.wall() - hour })
    const { removed, has } = await worker.node.builder.removeEntries(
      worker.ca.crlIssuer,
      'default',
      ({ number }) => number !== 2,
    )
    expect([removed, has({ seq: late[0]?.seq ?? 0, notAfter: 0 })]).toEqual([3, false])
    expect(await build()).toHaveLength(2)
  })
})

test('what is left of neighbouring segments becomes one, and what left is not found any more', async () => {
  const { ending, lasting } = await revokeBoth(1990, 20)
  const more = await revokeBoth(1990, 5)
  worker.node.clock.ahead = 2 * hour
  await build()
  expect(await segments()).toHaveLength(3)
  expect(await worker.node.listed.find(worker.ca.crlIssuer, ending[5]?.serial ?? '')).toBeDefined()
  expect((await remove()).removed).toBe(3980)
  expect((await segments()).map(({ count }) => count)).toEqual([25])
  const rows = [...lasting, ...more.lasting]
  expect(await build()).toEqual(serialsOf(rows))
  expect(await worker.node.listed.find(worker.ca.crlIssuer, ending[5]?.serial ?? '')).toBeUndefined()
  expect(await worker.node.listed.find(worker.ca.crlIssuer, rows[24]?.serial ?? '')).toBeDefined()
  rows.push(...(await worker.revoke(1)))
  expect(await build()).toEqual(serialsOf(rows))
})

test('a damaged segment is made again without what tidy removed', async () => {
  const { ending, lasting } = await revokeBoth(3, 3)
  worker.node.clock.ahead = 2 * hour
  await build()
  await remove()
  const seqs = ending.map(({ seq }) => seq).join()
  await worker.cluster.place.sql(`DELETE FROM pki_revocations WHERE crl_issuer = UNHEX(?) AND seq IN (${seqs})`, [
    worker.ca.crlIssuer,
  ])
  await worker.cluster.place.sql('DELETE FROM pki_segments WHERE crl_issuer = UNHEX(?)', [worker.ca.crlIssuer])
  expect(await build()).toEqual(serialsOf(lasting))
})

test('segments that no manifest and no list names go after two looks, and no others', async () => {
  await revokeBoth(2, 2)
  await build()
  const old = (await segments()).map(({ id }) => id)
  await revokeBoth(0, 1)
  await worker.node.builder.absorb(worker.ca.crlIssuer, 'default')
  const clock = new (class extends MovableClock {
    override monotonic = () => performance.now() + this.ahead
  })()
  const { job } = new Retirement({ database: worker.node.database, clock, manifests: worker.node.builder.manifests })
  const has = async (id: string | undefined) =>
    (await worker.cluster.place.sql('SELECT 1 FROM pki_segments WHERE id = ?', [id ?? ''])).length > 0
  const look = async () => {
    clock.ahead += hour
    await runJob(worker.node.database, job)
  }
  for (let n = 0; n < 3; n++) await look()
  // The published list names it.
  expect(await has(old[0])).toBe(true)
  const rows = await build()
  await look()
  expect(await has(old[0])).toBe(true)
  await look()
  expect(await has(old[0])).toBe(false)
  expect(await build()).toEqual(rows)
})
