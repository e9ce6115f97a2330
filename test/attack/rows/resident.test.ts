import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import type { Clock } from '../../../src/clock.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { clock, Place, reopen, useCluster } from '../../keys/support.ts'
import { openSql, type Sql } from '../sql.ts'

/** Keys that stay in the token: the one thing that a job of ours destroys, and that no dump of the database brings back. */

let hsm: Hsm
let place: Place
let sql: Sql
let custody: Custody

useCluster(
  'resident',
  async (made) => {
    ;({ hsm, place, custody } = made)
    sql = await openSql(place.url)
  },
  { strict: true },
)
afterAll(() => sql?.[Symbol.asyncDispose]())

const specification = { algorithm: 'ed25519', exportable: false, part: 'key', createdBy: 'me' } as const
const owner = () => ({ mount: '', key: randomUUID(), version: 1 })
const later: Clock = { ...clock, wall: () => clock.wall() + 2 * 3_600_000 }

test('a row that says that a key was only meant, put back after the key was stored, does not have it destroyed', async () => {
  const draft = await custody.materials.prepare(specification)
  const meant = await sql.row("SELECT * FROM intents WHERE state = 'intent'")
  const { ckaId } = await place.database.transaction((tx) => custody.materials.insert(tx, draft, owner()))
  expect(await sql.rows("SELECT * FROM intents WHERE state = 'intent'")).toEqual([])
  await sql.put('intents', meant)
  await using elsewhere = await Place.at(place.url)
  using node = await reopen(hsm, elsewhere, { strict: true, clock: later })
  await node.objects.residents.sweep()
  expect(await hsm.find({ class: 'private', id: ckaId ?? Buffer.alloc(0), token: true })).toHaveLength(1)
})

test('open: with the row of the key taken away as well, the job has no way to know, and the key is lost', async () => {
  const draft = await custody.materials.prepare(specification)
  const meant = await sql.row("SELECT * FROM intents WHERE state = 'intent'")
  const { id, ckaId } = await place.database.transaction((tx) => custody.materials.insert(tx, draft, owner()))
  await sql.put('intents', meant)
  await sql.rows('DELETE FROM materials WHERE id = ?', [id])
  await using elsewhere = await Place.at(place.url)
  using node = await reopen(hsm, elsewhere, { strict: true, clock: later })
  await node.objects.residents.sweep()
  expect(await hsm.find({ class: 'private', id: ckaId ?? Buffer.alloc(0), token: true })).toEqual([])
})
