import { afterAll, beforeAll, expect, test } from 'vitest'
import { CKR } from '../../src/hsm/constants.ts'
import { done, expectRefused, fresh, hello } from '../api/node.ts'
import { group, type Shim } from '../hsm/support/fault.ts'
import type { Client, Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { createFaulty, createForeign, type Foreign, makeEc, tool } from './tool.ts'

/** A failure of a token of managed keys affects only its own keys. */

let foreign: Foreign
let sibling: TestToken
let shim: Shim
let server: TestServer
let root: Client
/** Transit keys: in the token that fails, in another slot of the server's own module, in no other token. */
const keys = { far: fresh('k'), near: fresh('k'), own: fresh('k') }

beforeAll(async () => {
  sibling = await createToken('sibling')
  foreign = await createForeign()
  await makeEc(foreign, 'ec', '01')
  await makeEc(sibling, 'ec', '01')
  const faulty = await createFaulty(foreign)
  shim = faulty.shim
  const { environment } = faulty
  server = await startServer({
    workers: 1,
    config: {
      pkcs11Libraries: [
        { name: 'far', library: shim.library, environment, callDeadlineSeconds: 1, threads: 2 },
        { name: 'near', library: sibling.library },
      ],
    },
  })
  root = server.client()
  const common = { mechanism: '0x1041', key_label: 'ec', any_mount: true }
  const far = { library: 'far', token_label: foreign.label, pin: foreign.pin, ...common }
  const near = { library: 'near', token_label: sibling.label, pin: sibling.pin, ...common }
  await done(root.post('sys/managed-keys/pkcs11/far', far))
  await done(root.post('sys/managed-keys/pkcs11/near', near))
  await done(root.post(`transit/keys/${keys.far}`, { type: 'managed_key', managed_key_name: 'far' }))
  await done(root.post(`transit/keys/${keys.near}`, { type: 'managed_key', managed_key_name: 'near' }))
  await done(root.post(`transit/keys/${keys.own}`, { type: 'ecdsa-p256' }))
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

const sign = (key: string) => root.post(`transit/sign/${key}`, { input: hello })

async function expectRest(): Promise<void> {
  await done(sign(keys.own))
  await done(sign(keys.near))
  expect((await root.get('sys/health')).status).toBe(200)
}

async function untilServed(reply: () => Promise<Reply>): Promise<void> {
  const end = Date.now() + 60_000
  for (;;) {
    const { status, text } = await reply().catch(() => ({ status: 0, text: 'no answer' }))
    if (status === 200) return
    if (Date.now() > end) throw new Error(`${status} ${text}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

test('a token that is pulled: 503 for its keys alone, and service when it is back', async () => {
  await done(sign(keys.far))
  shim.set({ groups: group.all & ~group.init, rv: CKR.DEVICE_REMOVED })
  expect((await sign(keys.far)).status).toBe(503)
  for (let attempt = 0; attempt < 5; attempt++) {
    expectRefused(await sign(keys.far), 503, `the token "${foreign.label}" of library far is not available`)
    await expectRest()
  }
  // Verifying needs no token: the version pins the public key.
  shim.clear()
  await untilServed(() => sign(keys.far))
  await expectRest()
}, 60_000)

test('signatures verify while the token is away', async () => {
  const { string } = await done(sign(keys.far))
  shim.set({ groups: group.all & ~group.init, rv: CKR.DEVICE_REMOVED })
  const checked = await root.post(`transit/verify/${keys.far}`, { input: hello, signature: string('data.signature') })
  expect(checked.body).toMatchObject({ data: { valid: true } })
  shim.clear()
  await untilServed(() => sign(keys.far))
}, 60_000)

test('a lost session is opened again, unnoticed by the caller', async () => {
  shim.set({ groups: group.sign, rv: CKR.SESSION_HANDLE_INVALID, times: 1 })
  await done(sign(keys.far))
  shim.clear()
})

/** A managed key of that name, on an object of its own in the token that fails, and a transit key that uses it. */
async function keyOn(name: string, id: string): Promise<string> {
  await makeEc(foreign, name, id)
  const place = { library: 'far', token_label: foreign.label, pin: foreign.pin }
  const settings = { ...place, mechanism: '0x1041', key_label: name, key_id: id, any_mount: true }
  await done(root.post(`sys/managed-keys/pkcs11/${name}`, settings))
  const key = fresh('k')
  await done(root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name: name }))
  await done(sign(key))
  return key
}

/** Removes the pair, and has the token report that the server's handle is void. */
async function remove(name: string, id: string): Promise<void> {
  for (const type of ['privkey', 'pubkey']) {
    await tool(foreign, '--delete-object', '--type', type, '--label', name, '--id', id)
  }
  shim.set({ groups: group.sign, rv: CKR.KEY_HANDLE_INVALID, times: 1 })
}

test('a void handle is looked up again, unnoticed by the caller', async () => {
  shim.set({ groups: group.sign, rv: CKR.KEY_HANDLE_INVALID, times: 1 })
  await done(sign(keys.far))
  shim.clear()
})

test('an object that is gone from the token is a refusal', async () => {
  const key = await keyOn('gone', '0c')
  await remove('gone', '0c')
  expectRefused(await sign(key), 400, 'managed key "gone": the token has no such key')
  shim.clear()
  await done(sign(keys.far))
})

test('a new object under the same label and id is another key: no version signs by it until a rotation', async () => {
  const key = await keyOn('anew', '0d')
  const old = (await done(root.get(`transit/keys/${key}`))).string('data.keys.1.public_key')
  await remove('anew', '0d')
  await makeEc(foreign, 'anew', '0d')
  for (let attempt = 0; attempt < 3; attempt++) {
    expectRefused(
      await sign(key),
      400,
      'managed key "anew" no longer names the key of this version: rotate to use the one it names now',
    )
  }
  shim.clear()
  await done(root.post(`transit/keys/${key}/rotate`, { managed_key_name: 'anew' }))
  await done(sign(key))
  expect((await done(root.get(`transit/keys/${key}`))).string('data.keys.2.public_key')).not.toBe(old)
})

test('a call that hangs fails after its deadline, with those that wait behind it; meanwhile the rest serves', async () => {
  shim.set({ groups: group.sign, delayMicroseconds: 30_000_000 })
  const began = Date.now()
  const hung = Promise.all(Array.from({ length: 5 }, () => sign(keys.far)))
  await expectRest()
  for (const reply of await hung) expect(reply.status).toBe(503)
  expect(Date.now() - began).toBeLessThan(25_000)
  await expectRest()
  shim.clear()
  // Either the hung call has come back by itself, or the worker has been replaced: no intervention is needed.
  await untilServed(() => sign(keys.far))
  await untilServed(() => sign(keys.own))
}, 120_000)

test('a token that hangs before the login holds up no other request', async () => {
  await server.stop()
  shim.set({ groups: group.info, delayMicroseconds: 30_000_000 })
  await server.start()
  const waiting = sign(keys.far)
  for (let attempt = 0; attempt < 5; attempt++) await expectRest()
  expectRefused(await waiting, 503, `the token "${foreign.label}" of library far is not available`)
  shim.clear()
  await untilServed(() => sign(keys.far))
}, 90_000)

test('sealing and unsealing end and begin the sessions of managed tokens too', async () => {
  await done(sign(keys.far))
  const { opened, closed } = shim.read()
  expect(opened).toBeGreaterThan(closed)
  await done(root.post('sys/seal'))
  expect((await sign(keys.far)).status).toBe(503)
  await done(server.client('').post('sys/unseal', { key: server.unsealSecret }))
  await untilServed(() => sign(keys.far))
  await untilServed(() => sign(keys.near))
}, 60_000)
