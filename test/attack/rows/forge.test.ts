import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../../src/hsm/hsm.ts'
import { makeSystemKey } from '../../../src/keys/cluster/system.ts'
import { Custody } from '../../../src/keys/custody.ts'
import { Keks } from '../../../src/keys/kek/keks.ts'
import { wrapSecret } from '../../../src/keys/making/secret.ts'
import { clusterTable, keksTable, systemKeysTable } from '../../../src/keys/tables.ts'
import { Shape } from '../../../src/store/sealed/shape.ts'
import type { Table } from '../../../src/store/table.ts'
import { openCluster, openHsm, options, Place } from '../../keys/support.ts'
import { createTestedToken } from '../../support/template/keys.ts'
import { openSql, others, type Row, type Sql, type Value } from '../sql.ts'

/**
 * Attacks on the foundation of all seals. The rows that lead to the row-MAC key are read before anything can be
 * verified, and KWP binds no type: a key whose bytes a caller knows (by import or export) is a blob like any other.
 */

let hsm: Hsm
let place: Place
let sql: Sql

beforeAll(async () => {
  hsm = await openHsm(await createTestedToken('forge'))
  place = await Place.fresh()
  sql = await openSql(place.url)
  ;(await openCluster(hsm, place)).close()
})
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await place?.[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
})

const known = Buffer.alloc(32, 7)
const macOf = (message: Buffer): Buffer => createHmac('sha256', known).update(message).digest()
const checkText = Buffer.from('strongroom/check-value/1')

/** The row as a holder of the key `known` would seal it. */
function sealed(table: Table, keyId: Value, row: Row): Row {
  const shape = new Shape(table)
  const stored = shape.fields.map(({ name }) => row[name] ?? null)
  return { ...row, mac_key_id: keyId, mac: macOf(shape.canonical(1, stored)) }
}

/** Opens keys as a start of the server does, then makes a new key under each KEK that wraps callers' keys. */
async function open(more = {}): Promise<void> {
  await using elsewhere = await Place.at(place.url)
  using custody = await Custody.open(options(hsm, elsewhere.database, more))
  for (const [algorithm, exportable] of [
    ['aes256-gcm96', false],
    ['aes256-gcm96', true],
    ['hmac', false],
  ] as const) {
    await custody.materials.prepare({ algorithm, exportable, part: 'key', createdBy: 'me' })
  }
}

test.each(['use', 'open', 'export'] as const)(
  'a key that a caller knows, under the %s KEK, is not taken as one more row-MAC key',
  async (purpose) => {
    const kek = await new Keks(hsm, place.database, false).active(purpose)
    const blob = await wrapSecret(hsm, kek, known)
    const [keyId, kekId] = [randomUUID(), randomUUID()]
    const kekRow = await sql.row('SELECT * FROM keks WHERE id = ?', [kek.row.id])
    const rowKey = await sql.row("SELECT * FROM system_keys WHERE purpose = 'rows'")
    // Beside the real one, which still has the check value that the token remembers.
    const forged = { ...rowKey, id: keyId, kek: kekId, blob, check_value: macOf(checkText), state: 'retiring' }
    try {
      await sql.put('keks', sealed(keksTable, keyId, { ...kekRow, id: kekId, purpose: 'system', state: 'retiring' }))
      await sql.put('system_keys', sealed(systemKeysTable, keyId, forged))
      await expect(open()).rejects.toThrow('not what a KEK must be')
      await expect(open({ acceptRestore: true })).rejects.toThrow('not what a KEK must be')
    } finally {
      await sql.rows('DELETE FROM system_keys WHERE id = ?', [keyId])
      await sql.rows('DELETE FROM keks WHERE id = ?', [kekId])
    }
    await open()
  },
)

test('a row-MAC key that leaked from another life is not the one that the token remembers, though every seal fits', async () => {
  const system = await new Keks(hsm, place.database, false).active('system')
  const before = new Map<Table, Row[]>()
  for (const table of [clusterTable, keksTable, systemKeysTable]) {
    before.set(table, await sql.rows(`SELECT * FROM ${table.name}`))
  }
  const { id: keyId = null } = await sql.row("SELECT id FROM system_keys WHERE purpose = 'rows'")
  try {
    const blob = await wrapSecret(hsm, system, known)
    await sql.edit('system_keys', keyId, { blob, check_value: macOf(checkText) })
    for (const table of before.keys()) {
      for (const row of await sql.rows(`SELECT * FROM ${table.name}`))
        await sql.put(table.name, sealed(table, keyId, row))
    }
    await expect(open()).rejects.toThrow('another key than the one the token remembers')
    await expect(open({ acceptRestore: true })).rejects.toThrow('tampered with')
  } finally {
    for (const [table, rows] of before) for (const row of rows) await sql.put(table.name, row)
  }
  await open()
})

test('no other key under the same KEK is taken as one more row-MAC key: that of token ids, or one made for it', async () => {
  const [rows] = await sql.rows("SELECT * FROM system_keys WHERE purpose = 'rows'")
  const [tokens] = await sql.rows("SELECT * FROM system_keys WHERE purpose = 'tokens'")
  const system = await new Keks(hsm, place.database, false).active('system')
  const { blob, checkValue } = await makeSystemKey(hsm, system, 'rows')
  for (const [forged, reason] of [
    [tokens, 'the rows key has another check value'],
    [{ ...rows, blob, check_value: checkValue }, 'another key than the one the token remembers'],
  ] as const) {
    const id = randomUUID()
    await sql.put('system_keys', { ...forged, id, mac_key_id: id, purpose: 'rows', state: 'retiring' })
    await expect(open()).rejects.toThrow(reason)
    await sql.rows('DELETE FROM system_keys WHERE id = ?', [id])
  }
  await open()
})

test.each(['cluster', 'keks', 'system_keys'])(
  'no column of any row of %s can be edited before a start',
  async (table) => {
    let tried = 0
    for (const row of await sql.rows(`SELECT * FROM ${table}`)) {
      for (const column of await sql.columns(table)) {
        for (const value of others(column, row[column.name] ?? null)) {
          const undo = await sql.edit(table, row.id ?? null, { [column.name]: value })
          await expect(open(), `${table} ${row.purpose} ${column.name}`).rejects.toThrow()
          await undo()
          tried += 1
        }
      }
    }
    expect(tried).toBeGreaterThan(10)
    await open()
  },
)

test.each(['cluster', 'keks', 'system_keys'])('no row of %s can be deleted before a start', async (table) => {
  for (const row of await sql.rows(`SELECT * FROM ${table}`)) {
    await sql.rows(`DELETE FROM ${table} WHERE id = ?`, [row.id ?? null])
    await expect(open(), `${table} ${row.purpose}`).rejects.toThrow()
    await sql.put(table, row)
  }
  await open()
})
