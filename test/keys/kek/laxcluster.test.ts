import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { initialise } from '../../../src/keys/initialise.ts'
import { combine } from '../../../src/keys/kek/components.ts'
import { destroyKek } from '../../../src/keys/kek/kek.ts'
import { type Guard, makeLaxKek } from '../../hsm/support/laxkek.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { custodians } from '../custodians.ts'
import { initialising, makeKey, none, openHsm, Place, reopen } from '../support.ts'

const label = 'strongroom use'
const warned: { guards?: string[]; msg: string }[] = []
const log = pino({ level: 'warn' }, { write: (line) => void warned.push(JSON.parse(line)) })

let hsm: Hsm
let place: Place
let useKek: Buffer

/** Makes the cluster's use KEK again, as an older program would that did not know the guard. */
async function weaken(missing: Guard): Promise<void> {
  await destroyKek(hsm, useKek)
  await makeLaxKek(hsm, { label, id: useKek, value: combine(custodians.use) }, missing)
}

async function round(custody: Custody): Promise<void> {
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  if (lease === undefined) throw new Error('no lease')
  await custody.rotation.advance(none, lease.fence)
  await lease.release()
  await custody.rotation.prove()
}

/** The use KEKs in `kek status`. */
const statusOf = async (custody: Custody) =>
  (await custody.rotation.status())
    .filter(({ purpose }) => purpose === 'use')
    .map(({ state, lacking }) => ({ state, lacking }))

// NSS has no CKA_UNWRAP_TEMPLATE.
describe.skipIf(process.env.STRONGROOM_TEST_HSM === 'nss')(
  'a strict cluster whose use KEK is of an earlier program',
  { shuffle: false },
  () => {
    beforeAll(async () => {
      hsm = await openHsm(await createTestedToken('laxcluster'))
      place = await Place.fresh()
      await initialise(initialising(hsm, place.database, { strict: true, kek: { components: custodians } }))
      const [row] = await place.sql("SELECT cka_id FROM keks WHERE purpose = 'use'")
      useKek = row?.cka_id
    }, 120_000)
    afterAll(async () => {
      await place?.[Symbol.asyncDispose]()
      await hsm?.[Symbol.asyncDispose]()
    })

    it.each(['EXTRACTABLE', 'SENSITIVE'] as const)(
      'does not start where what it unwraps may leave: %s',
      async (guard) => {
        await weaken(guard)
        await expect(reopen(hsm, place, { strict: true })).rejects.toThrow(`does not enforce CKA_${guard} on`)
      },
    )

    it.each(['UNWRAP', 'MODIFIABLE', 'DERIVE'] as const)(
      'starts without the guard %s, warns and shows it',
      async (guard) => {
        await weaken(guard)
        warned.length = 0
        using custody = await reopen(hsm, place, { strict: true, log })
        expect(warned.filter(({ guards }) => guards?.join() === `CKA_${guard}`)).toHaveLength(1)
        expect(await statusOf(custody)).toEqual([{ state: 'active', lacking: [`CKA_${guard}`] }])
        await makeKey(custody, place.database, 'aes256-gcm96')
      },
    )

    it('is whole again once that KEK is rotated, which goes on opening old keys', async () => {
      using custody = await reopen(hsm, place, { strict: true })
      const old = await makeKey(custody, place.database, 'aes256-gcm96')
      await custody.rotation.announce('use')
      for (let rounds = 0; rounds < 4; rounds++) await round(custody)
      expect(await statusOf(custody)).toEqual([
        { state: 'retiring', lacking: ['CKA_DERIVE'] },
        { state: 'active', lacking: [] },
      ])
      using restarted = await reopen(hsm, place, { strict: true })
      await restarted.operations.cipher.encrypt(old, { plaintext: Buffer.from('hello') })
    })

    it('takes no new KEK into use that lacks a guard', async () => {
      using custody = await reopen(hsm, place, { strict: true })
      const { ckaId } = await custody.rotation.announce('use')
      await makeLaxKek(hsm, { label, id: ckaId }, 'DERIVE')
      for (let rounds = 0; rounds < 4; rounds++) await round(custody)
      expect((await statusOf(custody)).at(-1)).toEqual({ state: 'pending', lacking: ['CKA_DERIVE'] })
    })
  },
)
