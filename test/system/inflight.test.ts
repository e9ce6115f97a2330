import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, uuid } from '../api/node.ts'
import { serving, until } from '../attack/nodes.ts'
import type { Client, Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let root: Client
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  root = server.client()
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

interface Shown {
  readonly start_time: string
  readonly client_remote_address: string
  readonly request_path: string
  readonly request_method: string
  readonly client_id: string
}
const inFlight = async (client = root) =>
  (await done(client.get('sys/in-flight-req?pin=hidden'))).body as Record<string, Shown>

/** Requests keys that wait for the database until `look` has finished. */
async function whileHeld(names: readonly string[], look: () => Promise<unknown>): Promise<Reply[]> {
  const holder = await createConnection({ uri: server.database.url })
  try {
    await holder.query('LOCK TABLES transit_keys WRITE')
    const replies = Promise.all(names.map((name) => root.call('PUT', `transit/keys/${name}?pin=hidden`, {})))
    await look()
    await holder.query('UNLOCK TABLES')
    return await replies
  } finally {
    await holder.end()
  }
}

describe('sys/in-flight-req', () => {
  test('shows its own request, in the form of the reference and without an envelope', async () => {
    const shown = Object.entries(await inFlight())
    expect(shown).toEqual([
      [
        expect.stringMatching(uuid),
        {
          start_time: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
          client_remote_address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
          request_path: '/v1/sys/in-flight-req',
          request_method: 'GET',
          client_id: expect.stringMatching(/^[\w+/]{43}=$/),
        },
      ],
    ])
  })

  test('shows what every worker is answering, whichever is asked, until it is answered', async () => {
    const names = Array.from({ length: 4 }, () => fresh('held'))
    const paths = names.map((name) => `/v1/transit/keys/${name}`).sort()
    const held = async () => {
      const shown = Object.values(await inFlight()).filter(({ request_method }) => request_method === 'PUT')
      return shown.map(({ request_path }) => request_path).sort()
    }
    const replies = await whileHeld(names, async () => {
      await until(async () => (await held()).length === names.length)
      for (let round = 0; round < 3; round++) expect(await held()).toEqual(paths)
    })
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await held()).toEqual([])
  })

  test('is refused while a worker is silent', { timeout: 60_000 }, async () => {
    const [stopped = 0] = serving(server)
    process.kill(stopped, 'SIGSTOP')
    try {
      const asked = Array.from({ length: 8 }, () => server.client().get('sys/in-flight-req'))
      const why = '1 of the workers of this node did not tell their requests in time'
      expectRefused(await Promise.race(asked), 503, why)
      process.kill(stopped, 'SIGCONT')
      await Promise.all(asked)
    } finally {
      process.kill(stopped, 'SIGCONT')
    }
    await until(async () => (await root.get('sys/in-flight-req')).status === 200)
  })

  test('needs sudo', async () => {
    expectRefused(await server.client('').get('sys/in-flight-req'), 403, 'permission denied')
    const made = async (capabilities: string) => {
      const name = fresh('p')
      const policy = `path "sys/in-flight-req" { capabilities = [${capabilities}] }`
      await done(root.post(`sys/policies/acl/${name}`, { policy }))
      return server.client(
        (await done(root.post('auth/token/create', { policies: [name] }))).string('auth.client_token'),
      )
    }
    expect((await (await made('"read"')).get('sys/in-flight-req')).status).toBe(403)
    expect(Object.values(await inFlight(await made('"read", "sudo"')))).toHaveLength(1)
  })

  test('names a request by its path with names folded', async () => {
    const holder = await createConnection({ uri: server.database.url })
    await holder.query('LOCK TABLES policies WRITE')
    const asked = root.call('PUT', 'sys/policies/acl/%20Loud%20', { policy: 'path "x" { capabilities = ["read"] }' })
    const paths = async () => Object.values(await inFlight()).map(({ request_path }) => request_path)
    await until(async () => (await paths()).includes('/v1/sys/policies/acl/loud'))
    await holder.query('UNLOCK TABLES')
    await holder.end()
    expect((await asked).status).toBeLessThan(300)
  })
})
