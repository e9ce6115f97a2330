import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { makeStrictKek } from '../../../src/hsm/strict/strict.ts'
import { kekCheckValue, proveKek, proveStrict } from '../../../src/keys/kek/kek.ts'
import { Kek } from '../../../src/keys/kek/keks.ts'
import { guards, makeLaxKek } from '../../hsm/support/laxkek.ts'
import { aesTemplate, type OpenHsm, openHsm } from '../../hsm/support/open.ts'

let open: OpenHsm
let hsm: Hsm
beforeAll(async () => {
  open = await openHsm()
  hsm = open.hsm
})
afterAll(() => open[Symbol.asyncDispose]())

const label = 'strongroom use'

async function kekBy(make: (kek: { label: string; id: Buffer }) => Promise<unknown>) {
  const id = randomBytes(12)
  await make({ label, id })
  const [kek] = await hsm.find({ class: 'secret', id, token: true })
  if (kek === undefined) throw new Error('the token holds no such KEK')
  return kek
}

// NSS has no CKA_UNWRAP_TEMPLATE.
describe.skipIf(process.env.STRONGROOM_TEST_HSM === 'nss')('the trial of a strict KEK', () => {
  it('is passed by what the helper makes, and leaves nothing in the token', async () => {
    const kek = await kekBy((wanted) => makeStrictKek(hsm, wanted))
    await proveStrict(hsm, kek)
    expect(await hsm.find({ token: false })).toEqual([])
  })

  it.each(guards)('fails where the token does not enforce %s, and leaves nothing in the token', async (guard) => {
    const kek = await kekBy((wanted) => makeLaxKek(hsm, wanted, guard))
    await proveKek(hsm, kek, 'use')
    const rule = new RegExp(`strict mode: the use KEK .*CKA_${guard}\\b`)
    await expect(proveStrict(hsm, kek)).rejects.toThrow(rule)
    expect(await hsm.find({ token: false })).toEqual([])
  })

  it('fails for a KEK that unwraps nothing: its refusals prove nothing', async () => {
    const kek = await hsm.create(aesTemplate(['wrap'], { value: randomBytes(32), token: true, label }))
    await expect(proveStrict(hsm, kek)).rejects.toThrow('unwraps nothing')
    await hsm.destroy(kek)
    expect(await hsm.find({ token: false })).toEqual([])
  })

  describe('with a KEK that lacks a guard of later programs', () => {
    const weak = async () => {
      const id = randomBytes(12)
      await makeLaxKek(hsm, { label, id }, 'DERIVE')
      const [handle] = await hsm.find({ class: 'secret', id, token: true })
      if (handle === undefined) throw new Error('the token holds no such KEK')
      return { id: randomUUID(), purpose: 'use', ckaId: id, checkValue: await kekCheckValue(hsm, handle) }
    }

    it('is passed by one in use, and what it lacks is told', async () => {
      const told: (readonly string[])[] = []
      await new Kek(hsm, await weak(), true, (guards) => told.push(guards)).prove()
      expect(told).toEqual([['CKA_DERIVE']])
    })

    it('is not passed by a pending one, which is never used', async () => {
      const pending = new Kek(hsm, await weak(), true)
      await expect(pending.prove()).rejects.toThrow('strict mode: the use KEK does not enforce CKA_DERIVE')
    })

    it('is not made outside strict mode', async () => {
      const told: (readonly string[])[] = []
      await new Kek(hsm, await weak(), false, (guards) => told.push(guards)).prove()
      expect(told).toEqual([])
    })
  })
})

describe('a KEK', () => {
  it('of one purpose is none of another, whatever its row says', async () => {
    const kek = await hsm.create(aesTemplate(['wrap', 'unwrap'], { value: randomBytes(32), token: true, label }))
    await proveKek(hsm, kek, 'use')
    await expect(proveKek(hsm, kek, 'export')).rejects.toThrow(
      'the export KEK in the token is not what a KEK must be: label',
    )
    await hsm.destroy(kek)
  })

  it('that derives is none', async () => {
    const kek = await hsm.create(
      aesTemplate(['wrap', 'unwrap', 'derive'], { value: randomBytes(32), token: true, label }),
    )
    await expect(proveKek(hsm, kek, 'use')).rejects.toThrow(/is not what a KEK must be: derive$/)
    await hsm.destroy(kek)
  })
})
