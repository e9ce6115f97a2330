import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { base64, expectServed } from '../attack/nodes.ts'
import type { Client } from '../support/client.ts'
import { createDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** Two nodes on one database, each with another of its members first: what one answers, both know. */

const stack = new AsyncDisposableStack()
let one: TestServer
let other: TestServer
beforeAll(async () => {
  const database = stack.use(await createDatabase())
  const [first = '', ...rest] = database.urls
  one = stack.use(await startServer({ workers: 1, database: { ...database, url: database.urls.join() } }))
  const turned = { ...database, url: [...rest, first].join() }
  other = stack.use(await startServer({ workers: 1, joins: one, database: turned }))
  for (const type of ['transit', 'pki']) expectServed(await one.client().post(`sys/mounts/two-${type}`, { type }))
}, 240_000)
afterAll(() => stack.disposeAsync(), 60_000)

const both = (): readonly [Client, Client] => [one.client(), other.client()]

describe('two nodes', { shuffle: false }, () => {
  test('a rotation through either is used by the other at once', async () => {
    const clients = both()
    expectServed(await clients[0].post('two-transit/keys/k', {}))
    for (let version = 1; version <= 20; version++) {
      const [near, far] = version % 2 === 0 ? clients : [clients[1], clients[0]]
      const made = expectServed(await far.post('two-transit/encrypt/k', { plaintext: base64('plain') }))
      const ciphertext = made.string('data.ciphertext')
      expect(ciphertext).toMatch(new RegExp(`^vault:v${version}:`))
      const opened = expectServed(await near.post('two-transit/decrypt/k', { ciphertext }))
      expect(opened.string('data.plaintext')).toBe(base64('plain'))
      expectServed(await near.post('two-transit/keys/k/rotate'))
    }
  }, 120_000)

  test('rotations through both at once each make a version', async () => {
    const clients = both()
    expectServed(await clients[0].post('two-transit/keys/raced', {}))
    const rotations = Array.from({ length: 6 }, () =>
      clients.map((client) => client.post('two-transit/keys/raced/rotate')),
    )
    for (const reply of await Promise.all(rotations.flat())) expectServed(reply)
    const read = expectServed(await clients[1].get('two-transit/keys/raced'))
    expect(read.body).toMatchObject({ data: { latest_version: 13 } })
  }, 120_000)

  test('a token of ten uses has ten in all, whichever node is asked', async () => {
    const made = expectServed(await one.client().post('auth/token/create', { policies: ['default'], num_uses: 10 }))
    const token = made.string('auth.client_token')
    const uses = Array.from({ length: 30 }, (_, n) =>
      (n % 2 === 0 ? one : other).client(token).get('auth/token/lookup-self'),
    )
    const statuses = (await Promise.all(uses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    expect(statuses.filter((status) => status !== 200)).toEqual(Array(20).fill(403))
  }, 120_000)

  test('a certificate that one issued and the other revoked is revoked for both', async () => {
    const [near, far] = both()
    expectServed(await near.post('two-pki/root/generate/internal', { common_name: 'R', key_type: 'ec', ttl: '80h' }))
    expectServed(await far.post('two-pki/roles/r', { allow_any_name: true, key_type: 'ec', max_ttl: '72h' }))
    for (let n = 0; n < 5; n++) {
      const issued = expectServed(await near.post('two-pki/issue/r', { common_name: `${n}.example`, ttl: '24h' }))
      const serial = issued.string('data.serial_number')
      expectServed(await far.post('two-pki/revoke', { serial_number: serial }))
      for (const client of [near, far]) {
        const read = expectServed(await client.get(`two-pki/cert/${serial}`))
        expect(read.body).toMatchObject({ data: { revocation_time_rfc3339: expect.stringMatching(/^20\d\d-/) } })
      }
    }
  }, 120_000)
})
