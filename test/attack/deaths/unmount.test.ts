import { expect, test } from 'vitest'
import { clock, openHsm, Place, reopen } from '../../keys/support.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { base64, expectServed, serving, until } from '../nodes.ts'
import { openSql, type Sql } from '../sql.ts'

/** kill -9 of every worker while a job removes the contents of a mount. */

const keys = 600
const residents = 6

async function fill(server: TestServer): Promise<void> {
  const root = server.client()
  expectServed(await root.post('sys/mounts/big', { type: 'transit' }))
  const names = Array.from({ length: keys }, (_, index) => `k${index}`)
  const client = async (): Promise<void> => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const type = names.length < residents ? 'ed25519' : 'aes256-gcm96'
      expectServed(await root.post(`big/keys/${name}`, { type }))
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  await root.get('big/wrapping_key')
}

const tables = ['transit_keys', 'transit_versions', 'materials', 'transit_config']
async function rowsOf(sql: Sql, mount: string): Promise<number> {
  const counts = tables.map((table) => `(SELECT COUNT(*) FROM ${table} WHERE mount = ?)`)
  return Number((await sql.row(`SELECT ${counts.join(' + ')} AS n`, [mount, mount, mount, mount])).n)
}

test('a mount is gone at once with its path free; all it held goes although every worker is killed in the midst', async () => {
  await using server = await startServer({ workers: 2, config: { strict: true } })
  await using sql = await openSql(server.database.url)
  await using hsm = await openHsm(server.token)
  const objects = async () => (await hsm.find({ class: 'private', token: true })).length
  const before = await objects()
  await fill(server)
  expect(await objects()).toBe(before + residents)
  const root = server.client()
  const { id: uuid = '' } = await sql.row("SELECT id FROM mounts WHERE path = 'big/'")
  const mount = String(uuid)
  const whole = await rowsOf(sql, mount)
  expect(whole).toBeGreaterThan(3 * keys)

  expectServed(await root.delete('sys/mounts/big'))
  // The request itself cannot have removed everything: a mount this large needs the job.
  expect(await rowsOf(sql, mount)).toBeGreaterThan(0)
  expectServed(await root.post('sys/mounts/big', { type: 'transit' }))
  expect((await root.list('big/keys')).status).toBe(404)
  expectServed(await root.post('big/encrypt/k1', { plaintext: base64('new') }))
  expect((await root.list('big/keys')).text).toContain('"keys":["k1"]')

  await until(async () => (await rowsOf(sql, mount)) < whole)
  const workers = serving(server)
  for (const pid of workers) process.kill(pid, 'SIGKILL')
  const left = await rowsOf(sql, mount)
  expect(left).toBeGreaterThan(0)
  await until(async () => (await rowsOf(sql, mount)) === 0)
  await until(async () => (await sql.rows("SELECT id FROM loose_mounts WHERE state = 'emptied'")).length === 1)

  await using place = await Place.at(server.database.url)
  using custody = await reopen(hsm, place, { strict: true, clock })
  await custody.objects.residents.sweep()
  expect(await objects()).toBe(before)
  expect(await sql.rows("SELECT id FROM materials WHERE state <> 'active'")).toEqual([])
  expect(
    await sql.rows('SELECT material FROM usage_counters WHERE material NOT IN (SELECT id FROM materials)'),
  ).toEqual([])
  expect((await root.list('big/keys')).text).toContain('"keys":["k1"]')
}, 120_000)
