import { afterAll, beforeAll, expect, test } from 'vitest'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** The token's work in making keys: nothing is wrapped, unwrapped or derived more often than necessary. */

let shim: Shim
let server: TestServer
beforeAll(async () => {
  shim = await createShim('/usr/lib/softhsm/libsofthsm2.so')
  server = await startServer({ library: shim.library })
}, 120_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})

/** Calls that generate, wrap, unwrap or derive keys; each new object needs at least one. */
async function keyCalls(work: () => Promise<unknown>): Promise<number> {
  shim.set({ groups: group.key, rv: 0, times: 0 })
  await work()
  return shim.read().counted
}

/** Many, because a key of an earlier request may still be made ahead when the first of these begins. */
const created = 20

test.each([
  ['aes256-gcm96', {}, 2],
  ['ecdsa-p256', {}, 2],
  ['ed25519', {}, 2],
  ['hmac', { key_size: 32 }, 1],
  ['aes256-gcm96', { derived: true }, 3],
])(
  'a new key of type %s %j costs one wrap and one unwrap at most beyond the generation of its %i objects',
  async (type, settings, objects) => {
    const root = server.client()
    const create = (name: string) => root.post(`transit/keys/${name}`, { type, ...settings })
    // Things looked up once (KEKs, capabilities) are not part of the key's cost.
    expect((await create(`first-${type}-${objects}`)).status).toBe(200)
    const statuses: number[] = []
    const calls = await keyCalls(async () => {
      for (let n = 0; n < created; n++) statuses.push((await create(`next-${type}-${objects}-${n}`)).status)
    })
    expect(statuses).toEqual(Array(created).fill(200))
    expect(Math.ceil(calls / created)).toBeGreaterThanOrEqual(objects)
    expect(Math.floor(calls / created)).toBeLessThanOrEqual(3 * objects)
  },
)
