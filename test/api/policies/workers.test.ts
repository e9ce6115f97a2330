import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Client, Reply } from '../../support/client.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { done, hello } from '../node.ts'

let server: TestServer
let root: Client
let client: Client
beforeAll(async () => {
  server = await startServer({ workers: 2 })
  root = server.client()
  await done(root.post('transit/keys/k', { type: 'hmac', key_size: 32 }))
  await write('')
  const made = await done(root.post('auth/token/create', { policies: ['shared'], no_default_policy: true }))
  client = server.client(made.string('auth.client_token'))
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const write = (limits: string, ...capabilities: string[]) =>
  done(
    root.post('sys/policies/acl/shared', {
      policy: `path "transit/hmac/k*" { capabilities = ${JSON.stringify(capabilities)} ${limits} }`,
    }),
  )
/** Each request is a connection of its own, dealt out to the workers in turn: both answer. */
const ask = (times = 6): Promise<Reply[]> =>
  Promise.all(Array.from({ length: times }, () => client.post('transit/hmac/k', { input: hello, algorithm: 'sha1' })))
const statuses = async () => [...new Set((await ask()).map(({ status }) => status))]

test('a policy that was rewritten counts for every worker once the write is answered', async () => {
  for (let round = 0; round < 12; round++) {
    await write('', 'update')
    expect(await statuses()).toEqual([200])
    await write('', round % 2 ? 'deny' : 'read')
    expect(await statuses()).toEqual([403])
  }
})

test('so does a limit on parameters that was added', async () => {
  for (let round = 0; round < 12; round++) {
    await write('denied_parameters = { "hash_algorithm" = ["sha2-256"] }', 'update')
    expect(await statuses()).toEqual([200])
    await write('denied_parameters = { "hash_algorithm" = ["sha1"] }', 'update')
    expect(await statuses()).toEqual([403])
  }
})

test('and a policy that was deleted', async () => {
  for (let round = 0; round < 6; round++) {
    await write('', 'update')
    expect(await statuses()).toEqual([200])
    await done(root.delete('sys/policies/acl/shared'))
    expect(await statuses()).toEqual([403])
  }
})

test('no request that begins after the answer is served by the old policy, however many are on their way', async () => {
  for (let round = 0; round < 5; round++) {
    await write('', 'update')
    let answered = false
    const late: Promise<Reply>[] = []
    const storm = (async () => {
      while (late.length < 12) {
        const after = answered
        const reply = client.post('transit/hmac/k', { input: hello })
        if (after) late.push(reply)
        await reply
      }
    })()
    await write('', 'read')
    answered = true
    await storm
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual(Array(12).fill(403))
  }
})
