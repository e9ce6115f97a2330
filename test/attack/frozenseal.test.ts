import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'
import { type Hold, openHold } from './hold.ts'
import { decrypt, encrypt, until } from './nodes.ts'

/** Sealing a node whose database has frozen: the keys go, whatever the database does. */

let first: TestServer
let line: Hold
let node: TestServer
beforeAll(async () => {
  first = await startServer()
  line = await openHold(first.database.url)
  node = await startServer({ joins: first, workers: 2, config: { database: { url: line.url } } })
}, 60_000)
afterAll(async () => {
  await node?.[Symbol.asyncDispose]()
  await line?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
})

const guest = () => node.client('')
/** Enough connections that each worker has some: they are handed out in turn. */
const fromAll = async (ask: () => Promise<{ status: number }>): Promise<number[]> =>
  (await Promise.all(Array.from({ length: 8 }, ask))).map(({ status }) => status)
const sealed = async () => ((await guest().get('sys/seal-status')).body as { sealed: boolean }).sealed

test.each(['with changes under way', 'at rest'])(
  'is answered, and no key is used any more: %s',
  async (load) => {
    const ciphertext = await encrypt(node.client(), 'k', 'kept')
    expect(new Set(await fromAll(() => decrypt(node.client(), 'k', ciphertext)))).toEqual(new Set([200]))
    const changes =
      load === 'at rest' ? [] : Array.from({ length: 24 }, (_, n) => node.client().post(`transit/keys/k${n}`))
    const frozen = line.hold('')
    // While the lease of the caches lasts, the caller is known.
    const seal = node.client().call('PUT', 'sys/seal')
    await frozen
    expect((await seal).status).toBe(204)
    expect(await sealed()).toBe(true)
    expect(new Set(await fromAll(() => decrypt(node.client(), 'k', ciphertext)))).toEqual(new Set([503]))
    const ended = await Promise.all(changes)
    for (const { status } of ended) expect([200, 503]).toContain(status)
    // What was refused as unchanged is not there, and what was answered is.
    line.release()
    for (const [n, { status }] of ended.entries())
      if (status === 200) expect((await first.client().get(`transit/keys/k${n}`)).status).toBe(200)
    await until(async () => (await guest().call('PUT', 'sys/unseal', { key: node.unsealSecret })).status === 200)
    await until(async () =>
      (await fromAll(() => decrypt(node.client(), 'k', ciphertext))).every((status) => status === 200),
    )
  },
  60_000,
)
