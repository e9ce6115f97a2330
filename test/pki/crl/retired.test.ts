import { describe, expect, test } from 'vitest'
import { MovableClock, runJob } from '../../auth/world.ts'
import { TestMount, useOcspWorld } from '../ocsp/world.ts'

const world = useOcspWorld()
const hour = 3_600_000

describe('the jobs of the engine', () => {
  test('are these', () => {
    expect(world.worker.engine.jobs?.map(({ name }) => name).toSorted()).toEqual([
      'answer revocation requests of site default',
      'associate revocations with issuers of site default',
      'publish revocation lists of site default',
      'publish unified revocation lists',
      'remove answered revocation requests',
      'retire segments of revocation lists',
      'tidy of site default',
    ])
  })

  test('remove segments that lists no longer name', async () => {
    const clock = new (class extends MovableClock {
      override monotonic = () => performance.now() + this.ahead
    })()
    const worker = await world.join('default', clock)
    const pki = await TestMount.make(worker)
    const { crls, revoker } = worker.context
    const revoke = async () => {
      const serial = Buffer.from(await pki.issue(), 'hex')
      expect(await revoker.bySerial(pki.mount, serial, { reason: null })).toMatchObject({ state: 'revoked' })
    }
    const segments = async () => {
      const rows = await world.cluster.place.sql('SELECT id FROM pki_segments')
      return rows.map(({ id }) => String(id))
    }
    await revoke()
    const [first] = await segments()
    await revoke()
    expect(await segments()).toContain(first)
    expect(await segments()).toHaveLength(2)
    const job = worker.engine.jobs?.find(({ name }) => name === 'retire segments of revocation lists')
    for (let look = 0; look < 2; look++) {
      clock.ahead += hour
      if (job !== undefined) await runJob(worker.database, job)
    }
    expect(await segments()).toHaveLength(1)
    expect(await segments()).not.toContain(first)
    expect(await crls.rebuild(pki.mount)).toEqual([])
  })
})
