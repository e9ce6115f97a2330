import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import type { Client, Reply } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { alive, base64, decrypt, encrypt, expectServed, serving, until } from './nodes.ts'

/** A token that goes away, comes back, forgets, or hangs, under a node that serves. */

const deviceRemoved = 0x32
const deviceError = 0x30
const softhsm = '/usr/lib/softhsm/libsofthsm2.so'
const keys = ['one', 'two', 'three', 'four']
const several = 16
/** Much longer than the supervisor waits for a sign of life. */
const hangMicroseconds = 25e6

let shim: Shim
let server: TestServer
let root: Client
let ciphertexts: string[]

beforeAll(async () => {
  shim = await createShim(softhsm)
  server = await startServer({ workers: 2, library: shim.library })
  root = server.client()
  ciphertexts = await Promise.all(keys.map((key) => encrypt(root, key, `plaintext of ${key}`)))
}, 60_000)
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})
beforeEach(async () => {
  shim.clear()
  await until(async () => serving(server).length === 2 && (await healthy()))
})

/** Enough requests at once to reach both workers: connections go to each in turn. */
const all = (ask: () => Promise<Reply>): Promise<Reply[]> => Promise.all(Array.from({ length: several }, ask))
const statuses = async (ask: () => Promise<Reply>): Promise<Set<number>> =>
  new Set((await all(ask)).map(({ status }) => status))
const healthy = async (): Promise<boolean> => {
  try {
    return (await all(() => root.get('sys/health'))).every(({ status }) => status === 200)
  } catch {
    return false
  }
}
const seal = (): Promise<Reply> => root.post('transit/encrypt/one', { plaintext: base64('x') })

/** Every key opens its own ciphertext, and no other key's: a handle that names another key would. */
async function expectRightKeys(): Promise<void> {
  for (const [index, key] of keys.entries()) {
    for (const reply of await all(() => decrypt(root, key, ciphertexts[index] ?? ''))) {
      expect(expectServed(reply).string('data.plaintext')).toBe(base64(`plaintext of ${key}`))
    }
    const other = ciphertexts[(index + 1) % keys.length] ?? ''
    expect(await statuses(() => decrypt(root, key, other))).toEqual(new Set([400]))
    const fresh = await encrypt(root, key, 'new')
    for (const reply of await all(() => decrypt(root, key, fresh))) expectServed(reply)
  }
}

test.each([
  ['removed', deviceRemoved],
  ['failing at everything', deviceError],
])('a token that is %s gives 503, health shows it, and service resumes in the same processes', async (_, rv) => {
  const before = serving(server)
  shim.set({ groups: group.all, rv })
  for (const reply of await all(seal)) {
    expect(reply.status).toBe(503)
    expect(reply.headers['retry-after']).toBe('1')
    expect(reply.body).toEqual({ errors: ['the HSM is not available'] })
  }
  for (const reply of await all(() => root.get('sys/health'))) {
    expect(reply.status).toBe(503)
    expect(reply.body).toMatchObject({ sealed: false, hsm: 'lost' })
  }
  shim.clear()
  await until(healthy)
  await expectRightKeys()
  expect(serving(server)).toEqual(before)
})

test('a token that forgets its objects between two uses is asked again, and no handle of before names another key', async () => {
  // Keys are then loaded in another order, so that old handle numbers would be other keys.
  for (let round = 0; round < 3; round++) {
    shim.set({ groups: group.all, rv: deviceRemoved })
    expect(await statuses(seal)).toEqual(new Set([503]))
    shim.clear()
    await until(healthy)
    for (const key of keys.toReversed()) await encrypt(root, key)
    await expectRightKeys()
  }
})

test('while a token comes and goes under load, every answer is right or 503', async () => {
  shim.set({ groups: group.cipher, rv: deviceRemoved, every: 40, times: 6 })
  for (let round = 0; round < 12; round++) {
    const replies = await all(() => decrypt(root, 'two', ciphertexts[1] ?? ''))
    for (const reply of replies) {
      if (reply.status === 503) continue
      expect(expectServed(reply).string('data.plaintext')).toBe(base64('plaintext of two'))
    }
    if (round % 4 === 3) await until(healthy)
  }
  expect(shim.read().hit).toBeGreaterThan(0)
  shim.clear()
  await until(healthy)
  await expectRightKeys()
})

test('a worker whose call hangs is killed and replaced; no request waits longer than that', async () => {
  const before = serving(server)
  shim.set({ groups: group.cipher, delayMicroseconds: hangMicroseconds, times: 1 })
  const hanging = seal().catch((error: NodeJS.ErrnoException) => error.code)
  await until(() => shim.read().hit === 1)
  // Requests sent meanwhile are answered, or their connections end with their process.
  const meanwhile = await all(() => seal().catch(() => ({ status: 0 }) as Reply))
  expect(await hanging).toMatch(/ECONNRESET|EPIPE/)
  for (const { status } of meanwhile) expect([0, 200, 503]).toContain(status)
  expect(before.filter(alive)).toHaveLength(1)
  await until(() => serving(server).length === 2)
  await until(healthy)
  await expectRightKeys()
}, 60_000)

test('when the call of the only worker hangs, 503 is answered in its place until another serves', async () => {
  await using single = await startServer({ library: shim.library })
  const client = single.client()
  const ciphertext = await encrypt(client, 'single', 'plain')
  const ask = () => decrypt(client, 'single', ciphertext)
  const [worker = 0] = serving(single)
  shim.set({ groups: group.cipher, delayMicroseconds: hangMicroseconds, times: 1 })
  await expect(ask()).rejects.toThrow(/ECONNRESET|EPIPE|socket hang up/)
  const seen = new Set<string>()
  await until(async () => {
    const reply = await ask().catch(() => undefined)
    if (reply) seen.add(`${reply.status} ${reply.headers['retry-after'] ?? ''} ${reply.text}`)
    return reply?.status === 200
  })
  const [standIn, served, ...more] = [...seen]
  expect(standIn).toMatch(/^503 1 .*no worker of this node is healthy/)
  expect(served).toContain(base64('plain'))
  expect(more).toEqual([])
  expect(alive(worker)).toBe(false)
}, 60_000)
