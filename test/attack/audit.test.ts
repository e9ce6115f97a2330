import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { devicesTable } from '../../src/audit/devices.ts'
import { Custody } from '../../src/keys/custody.ts'
import type { mountsTable } from '../../src/request/mounts/mount.ts'
import { Shape } from '../../src/store/sealed/shape.ts'
import { enable, type TestDevice } from '../audit/device.ts'
import { openHsm, options, Place } from '../keys/support.ts'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { base64, clientWith, encrypt, expectRefused, expectServed } from './nodes.ts'
import { openSql, type Row, type Sql } from './sql.ts'

/**
 * Attacks on the audit by an owner of the database, a holder of a token, or a reader who looks for secrets in a file.
 */

let server: TestServer
let sql: Sql
let root: Client
let device: TestDevice

beforeAll(async () => {
  server = await startServer({ workers: 2, config: { log: { level: 'trace' } } })
  sql = await openSql(server.database.url)
  root = server.client()
  device = await enable(root)
}, 120_000)
afterAll(async () => {
  await sql?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

const deviceRow = (): Promise<Row> => sql.row('SELECT * FROM audit_devices')

/** The bytes a row is sealed over, when they can be sent as a JSON string. */
function messageOf(table: typeof devicesTable | typeof mountsTable, row: Row): Buffer {
  const shape = new Shape(table)
  const stored = shape.fields.map(({ name }) => row[name] ?? null)
  return shape.canonical(1, stored)
}

test('what audit-hash answers is never a row MAC', async () => {
  const row = await deviceRow()
  const message = messageOf(devicesTable, row)
  expect([...message].every((byte) => byte < 0x80)).toBe(true)
  // These must be the bytes that the row is sealed over: otherwise the rest would prove nothing.
  const hsm = await openHsm(server.token)
  await using place = await Place.at(server.database.url)
  {
    using custody = await Custody.open(options(hsm, place.database))
    expect(await custody.macs.rowMac.compute(message)).toEqual(row.mac)
  }
  await hsm[Symbol.asyncDispose]()
  const macOf = async (text: Buffer): Promise<Buffer> =>
    Buffer.from((await device.hash(text.toString('latin1'))).replace('hmac-sha256:', ''), 'hex')
  expect(await macOf(message)).not.toEqual(row.mac)

  const edited = { ...row, description: 'edited' }
  const undo = await sql.edit('audit_devices', row.id ?? '', {
    description: 'edited',
    mac: await macOf(messageOf(devicesTable, edited)),
  })
  await sql.invalidate()
  expectRefused(await root.get('sys/mounts'))
  await undo()
  await sql.invalidate()
  expectServed(await root.get('sys/mounts'))
})

test.each([
  ['takes out the device', (row: Row) => sql.rows('DELETE FROM audit_devices WHERE id = ?', [row.id ?? ''])],
  [
    'empties the table and its head',
    () => sql.rows("DELETE d, h FROM audit_devices d, heads h WHERE h.set = 'audit_devices'"),
  ],
  [
    'points it elsewhere',
    (row: Row) => sql.edit('audit_devices', row.id ?? '', { options: '{"file_path":"/dev/null"}' }),
  ],
  ['gives it another key', (row: Row) => sql.edit('audit_devices', row.id ?? '', { id: '0'.repeat(36) })],
])('who owns the database and %s ends the service, not the audit', async (_deed, attack) => {
  const row = await deviceRow()
  const head = await sql.row("SELECT * FROM heads WHERE `set` = 'audit_devices'")
  const size = device.text().length
  await attack(row)
  await sql.invalidate()
  // New connections, so that both workers are asked.
  for (let call = 0; call < 6; call++) expectRefused(await root.post('transit/keys/unseen'))
  expect((await root.get('sys/health')).status).toBe(200)
  expect(device.text().length).toBe(size)
  await sql.rows('DELETE FROM audit_devices')
  await sql.rows("DELETE FROM heads WHERE `set` = 'audit_devices'")
  await sql.put('heads', head)
  await sql.put('audit_devices', row)
  await sql.invalidate()
  expect((await root.get('transit/keys/unseen')).status).toBe(404)
})

test('a worker that starts does not begin a new set of devices in the place of one that was removed', async () => {
  const row = await deviceRow()
  const head = await sql.row("SELECT * FROM heads WHERE `set` = 'audit_devices'")
  await server.stop()
  await sql.rows('DELETE FROM audit_devices')
  await sql.rows("DELETE FROM heads WHERE `set` = 'audit_devices'")
  await server.start()
  expectRefused(await root.get('sys/mounts'))
  expect(await sql.rows("SELECT * FROM heads WHERE `set` = 'audit_devices'")).toEqual([])
  await server.stop()
  await sql.put('heads', head)
  await sql.put('audit_devices', row)
  await server.start()
  expectServed(await root.get('sys/mounts'))
})

test('nothing that was secret is in the file, however it was sent and whatever became of it', async () => {
  const secret = () => `canary${randomBytes(12).toString('hex')}`
  const [plain, context, input, wrong, bearer, query, deep, key] = Array.from({ length: 8 }, secret)
  const before = device.lines().length
  // The initialisation has printed the root token.
  const said = server.output().length
  const ciphertext = await encrypt(root, 'canary', plain)
  const outcomes = [
    await root.post('transit/decrypt/canary', { ciphertext }),
    await root.post('transit/encrypt/canary', { plaintext: wrong, context }),
    await root.post('transit/encrypt/canary', {
      batch_input: [{ plaintext: wrong }, { plaintext: base64(plain ?? '') }],
    }),
    await root.post('transit/hmac/canary', { input: base64(input ?? ''), [`x${deep}`.slice(0, 3)]: [[{ deep }]] }),
    await root.post('transit/no/such/path', { anything: deep }),
    await root.call('GET', `transit/keys/canary?context=${query}`),
    await server.client('').call('GET', 'transit/keys/canary', undefined, { Authorization: `Bearer ${bearer}` }),
    await server.client('').post('sys/unseal', { key }),
    await root.post('auth/token/lookup', { token: server.rootToken }),
    await root.post('auth/token/lookup', { token: `hvs.${key}` }),
    await root.post('sys/audit-hash/nowhere', { input: key }),
  ]
  const child = await clientWith(server, ['default'])
  const self = expectServed(await child.get('auth/token/lookup-self'))
  expect(outcomes.map(({ status }) => status)).not.toContain(500)
  expect(device.lines().length).toBeGreaterThan(before + 20)
  const secrets = [plain, context, input, wrong, bearer, query, deep, key].flatMap((text = '') => [text, base64(text)])
  secrets.push(ciphertext, server.rootToken, self.string('data.id'), self.string('data.accessor'))
  for (const text of [device.text(), server.output().slice(said)]) {
    for (const one of secrets) expect(text.includes(one), one).toBe(false)
  }
  // A reader who knows the value can find it.
  expect(device.text()).toContain(await device.hash(base64(plain ?? '')))
  expect(device.text()).toContain(await device.hash(server.rootToken))
})

test('under a storm of requests every answer is on record, once, in chains that are unbroken', async () => {
  const ask = async () => expectServed(await root.post('transit/random', {})).string('request_id')
  const asked = await Promise.all(Array.from({ length: 200 }, ask))
  const lines = device.of('transit/random')
  for (const id of asked) {
    expect(lines.filter(({ request }) => request.id === id).map(({ type }) => type)).toEqual(['request', 'response'])
  }
  const last = new Map<string, number>()
  for (const { chain } of device.lines()) {
    expect(chain.sequence).toBe((last.get(chain.incarnation) ?? 0) + 1)
    last.set(chain.incarnation, chain.sequence)
  }
})
