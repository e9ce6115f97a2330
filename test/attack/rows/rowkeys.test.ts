import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { Custody } from '../../../src/keys/custody.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { wrapSecret } from '../../../src/keys/making/secret.ts'
import { systemKeysTable } from '../../../src/keys/tables.ts'
import { Shape } from '../../../src/store/sealed/shape.ts'
import { openCluster, openHsm, options, Place } from '../../keys/support.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { openSql, type Row, type Sql } from '../sql.ts'

/**
 * A second key that seals rows. The attacker once had the bytes of a key under the system KEK (from the memory of a
 * server, say), and owns the database: only the token's anchor says which key counts.
 */

let hsm: Hsm
let place: Place
let sql: Sql
/** A row of `system_keys` for the key `known`, sealed by that key itself. */
let planted: Row
let genuine: Row

const known = Buffer.alloc(32, 9)
const macOf = (message: string | Buffer): Buffer => createHmac('sha256', known).update(message).digest()

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('rowkeys'))
  place = await Place.fresh()
  sql = await openSql(place.url)
  ;(await openCluster(hsm, place)).close()
  const system = await new Keks(hsm, place.database, false).active('system')
  genuine = await sql.row("SELECT * FROM system_keys WHERE purpose = 'rows'")
  const id = randomUUID()
  const blob = await wrapSecret(hsm, system, known)
  const row = { ...genuine, id, blob, check_value: macOf('strongroom/check-value/1'), state: 'retiring' }
  const shape = new Shape(systemKeysTable)
  const stored = shape.fields.map(({ name }) => (row as Row)[name] ?? null)
  planted = { ...row, mac_key_id: id, mac: macOf(shape.canonical(1, stored)) }
}, 60_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await place?.[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
})

/** Opens keys as a start of the server does. @returns the id of the key that seals rows */
async function open(more = {}): Promise<string> {
  await using elsewhere = await Place.at(place.url)
  using custody = await Custody.open(options(hsm, elsewhere.database, more))
  return custody.macs.rowMac.keyId
}

/** Opens, and changes the rows after the unverified reads: the settings row is the first that is read verified. */
async function openWhile(meanwhile: () => Promise<void>): Promise<string> {
  await using holder = await openSql(place.url)
  await holder.rows('LOCK TABLES cluster WRITE')
  const opening = open()
  let ended = false
  opening.then(
    () => undefined,
    () => {
      ended = true
    },
  )
  const waiting = `SELECT 1 FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table%'`
  while (!ended && (await sql.rows(waiting)).length === 0) await delay(10)
  await meanwhile()
  await holder.rows('UNLOCK TABLES')
  return opening
}

/** Does work with a further row, which it removes again. */
async function withRow<T>(row: Row, work: () => Promise<T>): Promise<T> {
  await sql.put('system_keys', row)
  try {
    return await work()
  } finally {
    await sql.rows('DELETE FROM system_keys WHERE id = ?', [row.id ?? null])
    await sql.put('system_keys', genuine)
  }
}

const refusal = 'another key than the one the token remembers'

describe('a key that was once under the system KEK and is known', () => {
  test('seals no row beside the one that the token names', async () => {
    await withRow(planted, async () => {
      await expect(open()).rejects.toThrow(refusal)
      await expect(open({ acceptRestore: true })).rejects.toThrow(refusal)
    })
    expect(await open()).toBe(genuine.id)
  })

  test('is not taken either from a first answer that the second one denies', async () => {
    const opening = withRow(planted, () =>
      openWhile(async () => void (await sql.rows('DELETE FROM system_keys WHERE id = ?', [planted.id ?? null]))),
    )
    await expect(opening).rejects.toThrow(refusal)
  })
})

test('the key that the token names seals under the id of its verified row alone', async () => {
  const other = { ...genuine, id: randomUUID() }
  const opening = withRow(other, async () => {
    await sql.edit('system_keys', genuine.id ?? null, { state: 'retiring' })
    return openWhile(async () => {
      await sql.rows('DELETE FROM system_keys WHERE id = ?', [other.id])
      await sql.put('system_keys', genuine)
    })
  })
  await expect(opening).rejects.toThrow('more than one row')
  expect(await open()).toBe(genuine.id)
})
