import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { expectServed } from '../nodes.ts'

/** Changes that share their commits with those of other callers, more of them at once than there are connections. */

let server: TestServer
beforeAll(async () => {
  server = await startServer({ workers: 2 })
}, 60_000)
afterAll(() => server[Symbol.asyncDispose]())

const clients = 48

const member = ({ body }: Reply, name: string): number =>
  Number((body as { readonly data?: Readonly<Record<string, unknown>> }).data?.[name])

/** How many answers had each status. */
function tally(statuses: readonly number[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test('a name that all make, configure and delete at once is refused at worst, never a fault of the server', async () => {
  const root = server.client()
  const statuses: number[] = []
  const path = 'transit/keys/contended'
  const acts = [
    () => root.post(path, {}),
    () => root.post(`${path}/config`, { deletion_allowed: true }),
    () => root.delete(path),
  ]
  const client = async (number: number): Promise<void> => {
    const act = acts[number % acts.length]
    for (let n = 0; n < 25; n++) statuses.push((await act?.())?.status ?? 0)
  }
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  const { 200: made = 0, 204: deleted = 0, 400: refused = 0, ...others } = tally(statuses)
  expect(others).toEqual({})
  expect([made > 0, deleted > 0, refused > 0]).toEqual([true, true, true])
}, 120_000)

test('a key whose row another transaction holds holds up no change of other keys', async () => {
  const root = server.client()
  const names = Array.from({ length: clients }, (_, n) => `beside-${n}`)
  for (const name of ['held', ...names]) expectServed(await root.post(`transit/keys/${name}`, {}))
  const holder = await createConnection(server.database.url)
  const [[row]] = await holder.query<RowDataPacket[]>("SELECT id FROM transit_keys WHERE name = 'held'")
  await holder.query('START TRANSACTION')
  await holder.query('SELECT 1 FROM transit_keys WHERE id = ? FOR UPDATE', [row?.id])
  let released = false
  const waiting = root.post('transit/keys/held/rotate', {}).then(({ status }) => ({ status, released }))
  const others = names.map(async (name) => {
    const statuses: number[] = []
    for (let n = 0; n < 3; n++) statuses.push((await root.post(`transit/keys/${name}/rotate`, {})).status)
    return { statuses, released }
  })
  const ends = await Promise.all(others)
  released = true
  await holder.end()
  expect(ends).toEqual(names.map(() => ({ statuses: [200, 200, 200], released: false })))
  expect(await waiting).toEqual({ status: 200, released: true })
}, 60_000)

test('each of many changes at once answers its own state, and all of them are there', async () => {
  const root = server.client()
  const names = Array.from({ length: clients }, (_, n) => `own-${n}`)
  const versions = await Promise.all(
    names.map(async (name) => {
      expectServed(await root.post(`transit/keys/${name}`, {}))
      const rotated = await Promise.all([1, 2, 3].map(() => root.post(`transit/keys/${name}/rotate`, {})))
      const configured = await root.post(`transit/keys/${name}/config`, { min_decryption_version: 2 })
      expect(member(configured, 'min_decryption_version')).toBe(2)
      return rotated.map((answer) => member(answer, 'latest_version')).sort()
    }),
  )
  expect(versions).toEqual(names.map(() => [2, 3, 4]))
  for (const name of names) {
    const read = await root.get(`transit/keys/${name}`)
    expect([member(read, 'latest_version'), member(read, 'min_decryption_version')]).toEqual([4, 2])
  }
}, 60_000)
