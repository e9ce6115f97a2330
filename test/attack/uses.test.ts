import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { expectServed, serving } from './nodes.ts'
import { connectionsOf, openPinned, type Pinned } from './pinned.ts'

/** A token that is good for a number of requests, asked for more at once, through both workers of a node. */

const connections = 50

let server: TestServer
let pinned: Pinned[]

beforeAll(async () => {
  server = await startServer({ workers: 2 })
  pinned = Array.from({ length: connections }, () => openPinned(server.url, server.rootToken))
  for (const one of pinned) expect((await one.ask('GET', 'sys/mounts')).status).toBe(200)
  expect(serving(server).map((pid) => connectionsOf(pid, server.url))).toEqual([connections / 2, connections / 2])
}, 60_000)
afterAll(async () => {
  for (const one of pinned ?? []) one[Symbol.dispose]()
  await server?.[Symbol.asyncDispose]()
})

const everywhere = async (token: string, verb: string, path: string): Promise<number[]> => {
  const answers = await Promise.all(pinned.map((one) => one.ask(verb, path, undefined, token)))
  return answers.map(({ status }) => status).sort()
}
const rotated = async (key: string): Promise<number> =>
  (expectServed(await server.client().get(`transit/keys/${key}`)).body as { data: { latest_version: number } }).data
    .latest_version

test.each([1, 2, 17, 49, 50])(
  'of 50 requests at once with a token for %i, so many are done and the rest are refused',
  async (uses) => {
    const root = server.client()
    const key = `key-${uses}`
    expectServed(await root.post(`transit/keys/${key}`))
    const policy = `path "transit/keys/${key}/rotate" { capabilities = ["update"] }`
    expectServed(await root.post(`sys/policies/acl/${key}`, { policy }))
    const made = expectServed(await root.post('auth/token/create', { policies: [key], num_uses: uses }))
    const [token, accessor] = [made.string('auth.client_token'), made.string('auth.accessor')]

    const statuses = await everywhere(token, 'POST', `transit/keys/${key}/rotate`)

    expect(statuses).toEqual([...Array(uses).fill(200), ...Array(connections - uses).fill(403)])
    // Refused requests were not carried out either.
    expect(await rotated(key)).toBe(1 + uses)
    // The last use has taken the token away, for every worker, before it was answered.
    expect(new Set(await everywhere(token, 'GET', 'auth/token/lookup-self'))).toEqual(new Set([403]))
    expect((await root.post('auth/token/lookup-accessor', { accessor })).status).toBe(400)
    expect((await root.list('auth/token/accessors')).text).not.toContain(accessor)
  },
)

test('a body above 64 KiB, for which the token is looked at before, takes one use and is answered', async () => {
  const root = server.client()
  expectServed(await root.post('transit/keys/long'))
  for (const uses of [1, 2]) {
    const made = await root.post('auth/token/create', { policies: ['root'], num_uses: uses })
    const client = server.client(expectServed(made).string('auth.client_token'))
    const statuses = []
    for (let count = 0; count <= uses; count++) {
      statuses.push((await client.post('transit/encrypt/long', { plaintext: 'A'.repeat(100_000) })).status)
    }
    // Of a token without uses a long body is not even read.
    expect(statuses).toEqual([...Array(uses).fill(200), 413])
  }
})

test('a request that the policies refuse takes a use too, and none is given back', async () => {
  const made = await server.client().post('auth/token/create', { policies: ['default'], num_uses: 20 })
  const token = expectServed(made).string('auth.client_token')
  const refused = await Promise.all(pinned.slice(0, 10).map((one) => one.ask('GET', 'sys/mounts', undefined, token)))
  expect(refused.map(({ status }) => status)).toEqual(Array(10).fill(403))
  const statuses = await everywhere(token, 'GET', 'auth/token/lookup-self')
  expect(statuses).toEqual([...Array(10).fill(200), ...Array(connections - 10).fill(403)])
})
