import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import type { Custody } from '../../../src/keys/custody.ts'
import { none, Place, reopen, useCluster } from '../../keys/support.ts'
import { openSql, type Row, type Sql } from '../sql.ts'

/** KEK rows that were ours once: if they were put back, new keys would go under a retired KEK. */

let hsm: Hsm
let place: Place
let sql: Sql
/** Goes on serving from before every attack. */
let custody: Custody

useCluster('kekhead', async (cluster) => {
  ;({ hsm, place, custody } = cluster)
  sql = await openSql(place.url)
})
afterAll(() => sql?.[Symbol.asyncDispose]())

/** The rows of all KEKs and of their head. */
interface Copy {
  readonly keks: readonly Row[]
  readonly head: Row
}

const copy = async (): Promise<Copy> => ({
  keks: await sql.rows('SELECT * FROM keks'),
  head: await sql.row("SELECT * FROM heads WHERE `set` = 'keks'"),
})

async function putBack({ keks, head }: Copy): Promise<void> {
  await sql.rows('DELETE FROM keks')
  for (const row of keks) await sql.put('keks', row)
  await sql.put('heads', head)
  await invalidate()
}

/** Empties the caches, as a write would. */
async function invalidate(): Promise<void> {
  await sql.rows('UPDATE versions SET v = v + 1')
  await new Promise((resolve) => setTimeout(resolve, 300))
  place.database.poll()
}

/** Replaces the use KEK. @returns the new one's id */
async function rotate(): Promise<string> {
  const { id } = await custody.rotation.announce('use')
  const state = async () => (await sql.row('SELECT state FROM keks WHERE id = ?', [id])).state
  for (let rounds = 0; (await state()) !== 'active'; rounds++) {
    expect(rounds).toBeLessThan(5)
    await round(custody)
    await custody.rotation.prove()
  }
  return id
}

/** One round of the job that rotates KEKs. */
async function round(one: Custody): Promise<void> {
  const lease = await place.database.jobLease(one.rotation.job.name, 30)
  if (lease === undefined) throw new Error('no lease')
  try {
    await one.rotation.advance(none, lease.fence)
  } finally {
    await lease.release()
  }
}

/** The KEK that a new key goes under. */
async function kekOfNewKey(one: Custody): Promise<string | null | undefined> {
  const wanted = { algorithm: 'aes256-gcm96', exportable: false, part: 'key', createdBy: 'me' } as const
  return (await one.materials.prepare(wanted)).fields.kek
}

let before: Copy
let after: Copy
let active: string
beforeEach(async () => {
  before = await copy()
  active = await rotate()
  after = await copy()
}, 60_000)
afterEach(() => putBack(after))

describe('with the KEKs put back as they were before one was retired', () => {
  test('and their head, a running worker makes no key under it', async () => {
    expect(await kekOfNewKey(custody)).toBe(active)
    await putBack(before)
    await expect(kekOfNewKey(custody)).rejects.toThrow(/as of change \d+, change \d+ was seen before/)
  })

  test('and their head, no server starts', async () => {
    await putBack(before)
    await using elsewhere = await Place.at(place.url)
    await expect(reopen(hsm, elsewhere)).rejects.toThrow(/the set keks is at change \d+, the token remembers \d+/)
  })

  test('and their head once a server has started, that server makes no key under it', async () => {
    await using elsewhere = await Place.at(place.url)
    using other = await reopen(hsm, elsewhere)
    await putBack(before)
    elsewhere.database.poll()
    await expect(kekOfNewKey(other)).rejects.toThrow('was seen before')
  })

  test('and their head, a running worker that has not seen the change makes no key under it', async () => {
    await using elsewhere = await Place.at(place.url)
    using other = await reopen(hsm, elsewhere)
    const { id } = await custody.rotation.announce('use')
    await round(custody)
    for (const one of [custody, other]) await one.rotation.prove()
    const unseen = await copy()
    await round(custody)
    after = await copy()
    expect((await sql.row('SELECT state FROM keks WHERE id = ?', [id])).state).toBe('active')
    await putBack(unseen)
    elsewhere.database.poll()
    await expect(kekOfNewKey(other)).rejects.toThrow('was seen before')
  })

  test('and their head, a worker that only proves KEKs has noticed the change before', async () => {
    await using elsewhere = await Place.at(place.url)
    using other = await reopen(hsm, elsewhere)
    await custody.rotation.announce('open')
    after = await copy()
    elsewhere.database.poll()
    // The token remembers nothing of an announcement.
    await other.rotation.prove()
    await putBack(before)
    elsewhere.database.poll()
    await expect(other.rotation.prove()).rejects.toThrow('was seen before')
    await expect(kekOfNewKey(other)).rejects.toThrow('was seen before')
  })

  test('and their head or not, no worker shows them', async () => {
    await putBack(before)
    await expect(custody.rotation.status()).rejects.toThrow('was seen before')
    await expect(custody.rotation.prove()).rejects.toThrow('was seen before')
    await putBack({ ...before, head: after.head })
    await expect(custody.rotation.status()).rejects.toThrow('do not match the head of their set')
    await expect(custody.rotation.prove()).rejects.toThrow('do not match the head of their set')
  })

  test('and no head, nothing is stored under a KEK that was destroyed', async () => {
    const wanted = { algorithm: 'aes256-gcm96', exportable: false, part: 'key', createdBy: 'me' } as const
    const draft = await custody.materials.prepare(wanted)
    const store = () => {
      const owner = { mount: '', key: randomUUID(), version: 1 }
      return place.database.transaction((tx) => custody.materials.insert(tx, draft, owner))
    }
    await rotate()
    expect((await store()).kek).toBe(active)
    const [, retiring] = [await sql.rows('DELETE FROM materials WHERE kek = ?', [active]), await copy()]
    await custody.rotation.destroy(active, 0)
    after = await copy()
    await expect(store()).rejects.toThrow('under a KEK that is gone')
    await putBack({ ...retiring, head: after.head })
    await expect(store()).rejects.toThrow('do not match the head of their set')
    await putBack(retiring)
    await expect(store()).rejects.toThrow('the KEKs have changed meanwhile')
  })

  test('and no head, nobody makes a key or starts', async () => {
    await putBack({ ...before, head: after.head })
    await expect(kekOfNewKey(custody)).rejects.toThrow('do not match the head of their set')
    await using elsewhere = await Place.at(place.url)
    await expect(reopen(hsm, elsewhere)).rejects.toThrow('do not match the head of their set')
  })

  test('or without any head, nobody makes a key or starts', async () => {
    await sql.rows("DELETE FROM heads WHERE `set` = 'keks'")
    await invalidate()
    await expect(kekOfNewKey(custody)).rejects.toThrow('the head of the set is missing')
    await using elsewhere = await Place.at(place.url)
    await expect(reopen(hsm, elsewhere)).rejects.toThrow('the head of the set is missing')
  })

  test('and their head, no rotation goes on from there', async () => {
    await putBack(before)
    await expect(round(custody)).rejects.toThrow('was seen before')
    await expect(custody.rotation.announce('use')).rejects.toThrow('was seen before')
  })
})

test('every other purpose goes on after a change of hands, on every node', async () => {
  await using elsewhere = await Place.at(place.url)
  using other = await reopen(hsm, elsewhere)
  for (const one of [custody, other]) {
    expect(await kekOfNewKey(one)).toBe(active)
    const wanted = { algorithm: 'aes256-gcm96', exportable: true, part: 'key', createdBy: 'me' } as const
    expect((await one.materials.prepare(wanted)).fields.kek).not.toBe(active)
  }
})
