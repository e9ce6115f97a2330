import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKK, CKM } from '../../src/hsm/constants.ts'
import type { Handle } from '../../src/hsm/handle.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { Custody } from '../../src/keys/custody.ts'
import { Keks } from '../../src/keys/kek/keks.ts'
import { systemKeysTable } from '../../src/keys/tables.ts'
import { openCluster, openHsm, options, Place } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

let hsm: Hsm
beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('domain'))
}, 60_000)
afterAll(() => hsm[Symbol.asyncDispose]())

test.each([
  ['a new cluster: after a domain of its own, so that no credential has the key’s check value', 2],
  ['a cluster from before: as its rows have them', 1],
])('MACs token ids of %s', async (_, form) => {
  await using place = await Place.fresh()
  const first = await openCluster(hsm, place)
  const key = await tokenKey(place)
  if (form === 1) {
    const checkValue = await hsm.sign(key.handle, hmac256, Buffer.from('strongroom/check-value/1'), 32)
    const table = place.database.table(systemKeysTable)
    await place.database.transaction(async (tx) => {
      const row = await table.find(tx, { purpose: 'tokens' })
      if (row) await table.update(tx, row, { checkValue })
    })
  }
  const custody = await Custody.open(options(hsm, place.database))
  const { checkValue } = await tokenKey(place)
  const texts = ['hvs.token', 'strongroom/check-value/1', 'strongroom/check-value/2']
  for (const text of texts.map((one) => Buffer.from(one))) {
    const mac = await custody.macs.tokenMac(text)
    const domain = Buffer.from(form === 1 ? '' : 'strongroom/token-id/1\0')
    expect(mac).toEqual(await hsm.sign(key.handle, hmac256, Buffer.concat([domain, text]), 32))
    if (form === 2) expect(mac).not.toEqual(checkValue)
  }
  await hsm.destroy(key.handle)
  custody.close()
  first.close()
})

const hmac256 = { type: CKM.SHA256_HMAC }

/** The key of token ids as an object of the test's own, and the check value that its row has. */
async function tokenKey(place: Place): Promise<{ handle: Handle; checkValue: Buffer }> {
  const { database } = place
  const row = await database.read((q) => database.table(systemKeysTable).find(q, { purpose: 'tokens' }))
  if (row === undefined) throw new Error('no key of token ids')
  const kek = await new Keks(hsm, database, false).get(row.kek)
  const template = { class: 'secret', keyType: CKK.GENERIC_SECRET, usages: ['sign'] } as const
  return { handle: await kek.unwrap(row.blob, template), checkValue: row.checkValue }
}
