import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import type { Clock } from '../../../src/clock.ts'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { pairAlgorithm } from '../../../src/keys/algorithms.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { objectId } from '../../../src/keys/kek/identity.ts'
import { provePrivate } from '../../../src/keys/live/proof.ts'
import { makeResident } from '../../../src/keys/making/making.ts'
import { Material } from '../../../src/keys/material.ts'
import type { Draft } from '../../../src/keys/materials/draft.ts'
import { intentsTable, type MaterialRow } from '../../../src/keys/tables.ts'
import { clock, Place, reopen, useCluster } from '../../keys/support.ts'
import { openSql, type Row, type Sql } from '../sql.ts'

/** Keys that stay in the token: a job of ours destroys them, and no dump of the database brings them back. */

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
  { strict: true, residentLimit: 20 },
)
afterAll(() => sql?.[Symbol.asyncDispose]())

const specification = { algorithm: 'ed25519', exportable: false, part: 'key', createdBy: 'me' } as const
const owner = () => ({ mount: '', key: randomUUID(), version: 1 })
const later: Clock = { ...clock, wall: () => clock.wall() + 2 * 3_600_000 }

const store = (draft: Draft) => place.database.transaction((tx) => custody.materials.insert(tx, draft, owner()))

const objectsOf = async ({ ckaId }: { ckaId: Buffer | null }) =>
  (await hsm.find({ class: 'private', id: ckaId ?? Buffer.alloc(0), token: true })).length

/** Runs the job as of two hours later, on a worker that has just started. */
async function sweep(): Promise<number> {
  await using elsewhere = await Place.at(place.url)
  using node = await reopen(hsm, elsewhere, { strict: true, clock: later })
  return await node.objects.residents.sweep()
}

/** A stored key, and the row that announced it before. */
async function makeStored(): Promise<{ meant: Row; material: MaterialRow }> {
  const draft = await custody.materials.prepare(specification)
  const meant = await sql.row("SELECT * FROM intents WHERE state = 'intent'")
  return { meant, material: await store(draft) }
}

const remove = ({ owner: key }: MaterialRow) =>
  place.database.transaction((tx) => custody.materials.removeOwned(tx, { key }))

async function sign(material: MaterialRow): Promise<Buffer> {
  custody.objects.handles.drop(material.id)
  return custody.operations.signer.sign(new Material(material), Buffer.from('x'), {
    ...{ hash: undefined, prehashed: false, padding: 'pss', saltLength: 'auto', marshaling: 'asn1' },
  })
}

test('a row that says that a key was only meant, put back after the key was stored, does not have it destroyed', async () => {
  const { meant, material } = await makeStored()
  expect(await sql.rows("SELECT * FROM intents WHERE state = 'intent'")).toEqual([])
  await sql.put('intents', meant)
  await sweep()
  expect(await objectsOf(material)).toBe(1)
})

test('nor with the row of the key taken away as well: the token knows that it was stored', async () => {
  const { meant, material } = await makeStored()
  const row = await sql.row('SELECT * FROM materials WHERE id = ?', [material.id])
  await sql.put('intents', meant)
  await sql.rows('DELETE FROM materials WHERE id = ?', [material.id])
  await sweep()
  await sweep()
  expect(await objectsOf(material)).toBe(1)
  await sql.put('materials', row)
  expect((await sign(material)).length).toBe(64)
})

test('a key that was made and not stored goes, and its mark with it', async () => {
  const { fields } = await custody.materials.prepare(specification)
  const marks = () => hsm.find({ class: 'data', application: 'strongroom birth', token: true })
  expect(await marks()).toHaveLength(1)
  expect(await sweep()).toBe(1)
  expect(await objectsOf({ ckaId: fields.ckaId ?? null })).toBe(0)
  expect(await marks()).toEqual([])
  expect(await sql.rows('SELECT * FROM intents')).toEqual([])
})

test('a key whose deletion was answered has its tombstone, goes though its rows are put back, and then needs none', async () => {
  const { material } = await makeStored()
  const row = await sql.row('SELECT * FROM materials WHERE id = ?', [material.id])
  await remove(material)
  expect(await custody.cluster.dead()).toEqual([material.id])
  expect(await objectsOf(material)).toBe(1)
  await sql.put('materials', row)
  await sql.rows("DELETE FROM intents WHERE state = 'removed'")
  await sweep()
  expect(await objectsOf(material)).toBe(0)
  expect(await custody.cluster.dead()).toEqual([])
  await sql.rows('DELETE FROM materials WHERE id = ?', [material.id])
})

test('a key that was deleted when this token could not be told of it goes by the row that says so', async () => {
  const { material } = await makeStored()
  await remove(material)
  await custody.cluster.bury({ buried: [material.id] })
  expect(await sweep()).toBe(1)
  expect(await objectsOf(material)).toBe(0)
  expect(await sql.rows('SELECT * FROM intents')).toEqual([])
  expect(await custody.cluster.dead()).toEqual([])
})

test('a key of another token is refused by the serial of its token, and no sweep of this one settles it', async () => {
  const draft = await custody.materials.prepare(specification)
  await custody.materials.abandon(draft)
  const [id, tokenSerial] = [randomUUID(), 'another']
  const elsewhere = { ...draft.fields, id, ckaId: objectId(custody.cluster.id, id), tokenSerial }
  const material = await store({ fields: elsewhere, intent: undefined })
  await expect(sign(material)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('lives in the token with serial another alone'),
  })
  await remove(material)
  expect(await custody.cluster.dead()).toEqual([])
  await sweep()
  expect(await sql.rows("SELECT * FROM intents WHERE state = 'removed'")).toHaveLength(1)
  await sql.rows('DELETE FROM intents')
})

test('another key that was put in the place of one in the token signs nothing', async () => {
  const { material } = await makeStored()
  expect((await sign(material)).length).toBe(64)
  const [object] = await hsm.find({ class: 'private', id: material.ckaId ?? Buffer.alloc(0), token: true })
  if (object === undefined || material.ckaId === null) throw new Error('no object')
  await hsm.destroy(object)
  const algorithm = pairAlgorithm('ed25519')
  if (algorithm === undefined) throw new Error('no ed25519')
  await makeResident(hsm, algorithm, material.ckaId, 'key')
  await expect(sign(material)).rejects.toThrow('it was replaced')
})

test('open: a deletion that the database made fail is completed later from the row of its transaction', async () => {
  const { material } = await makeStored()
  await sql.rows('SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED')
  let seen: Row | undefined
  const failed = place.database.transaction(async (tx) => {
    await custody.materials.removeOwned(tx, { key: material.owner })
    // Writes are sent with the next read.
    await place.database.table(intentsTable).list(tx, { material: material.id }, { by: 'id', limit: 1 })
    seen = await sql.row("SELECT * FROM intents WHERE state = 'removed' AND material = ?", [material.id])
    throw new Error('the database says no')
  })
  await expect(failed).rejects.toThrow('the database says no')
  expect((await sign(material)).length).toBe(64)
  if (seen === undefined) throw new Error('no row was written')
  await sql.put('intents', seen)
  // With the key's own row there the other one is not believed.
  await sweep()
  expect(await objectsOf(material)).toBe(1)
  await sql.put('intents', seen)
  await sql.rows('DELETE FROM materials WHERE id = ?', [material.id])
  await sweep()
  expect(await objectsOf(material)).toBe(0)
})

test('a key that only decrypts is known by its modulus, and another in its place is refused', async () => {
  const algorithm = pairAlgorithm('rsa-2048')
  if (algorithm === undefined) throw new Error('no rsa-2048')
  const fields = await Promise.all(
    ['one', 'two'].map(async (id) => {
      const { spki } = await makeResident(hsm, algorithm, Buffer.from(id), 'wrapping')
      const [object] = await hsm.find({ class: 'private', id: Buffer.from(id), token: true })
      if (object === undefined) throw new Error('no object')
      return { object, spki }
    }),
  )
  const { material } = await makeStored()
  const of = (publicKey: Buffer | null | undefined) =>
    new Material({ ...material, algorithm: 'rsa-2048', part: 'wrapping', publicKey: publicKey ?? null })
  const [one, two] = fields
  if (one === undefined || two === undefined) throw new Error('no pairs')
  await provePrivate(hsm, one.object, of(one.spki))
  await expect(provePrivate(hsm, one.object, of(two.spki))).rejects.toThrow('it was replaced')
  for (const { object } of fields) await hsm.destroy(object)
})
