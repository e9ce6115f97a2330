import { afterAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { makeKey, none, Place, reopen, useCluster } from '../../keys/support.ts'
import { openSql, type Sql } from '../sql.ts'

/** KEKs: if one is lost, so is everything under it, whatever dumps of the database exist. */

let hsm: Hsm
let place: Place
let sql: Sql
let custody: Custody

useCluster('keks', async (cluster) => {
  ;({ hsm, place, custody } = cluster)
  sql = await openSql(place.url)
})
afterAll(() => sql?.[Symbol.asyncDispose]())

/** One round of the job that rotates KEKs. */
async function round(): Promise<void> {
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  if (lease === undefined) throw new Error('no lease')
  await custody.rotation.advance(none, lease.fence).catch(() => undefined)
  await lease.release()
}

test('a row that says that a KEK is still to be made, put back after it is in use, does not have it made anew', async () => {
  const { id } = await custody.rotation.announce('use')
  const announced = await sql.row('SELECT * FROM keks WHERE id = ?', [id])
  const state = async () => (await sql.row('SELECT state FROM keks WHERE id = ?', [id])).state
  for (let rounds = 0; (await state()) !== 'active'; rounds++) {
    expect(rounds).toBeLessThan(5)
    await round()
    await custody.rotation.prove()
  }
  const key = await makeKey(custody, place.database, 'aes256-gcm96')
  expect(key.row.kek).toBe(id)
  const sealed = await custody.operations.cipher.encrypt(key, { plaintext: Buffer.from('plain') })

  const active = await sql.row('SELECT * FROM keks WHERE id = ?', [id])
  await sql.put('keks', announced)
  for (let rounds = 0; rounds < 3; rounds++) await round()
  await sql.put('keks', active)
  await using elsewhere = await Place.at(place.url)
  using fresh = await reopen(hsm, elsewhere)
  const again = await fresh.materials.fetch(key.id)
  expect((await fresh.operations.cipher.decrypt(again, sealed)).toString()).toBe('plain')
})
