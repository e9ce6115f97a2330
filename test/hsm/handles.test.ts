import { createHmac, randomBytes } from 'node:crypto'
import pkcs11 from 'pkcs11js'
import { describe, expect, test } from 'vitest'
import { CKR } from '../../src/hsm/constants.ts'
import { type Handle, StaleHandle } from '../../src/hsm/handle.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { group, type Shim } from './support/fault.ts'
import { openFaulty, until } from './support/faulty.ts'
import { executors, hmac256, macTemplate } from './support/open.ts'

const message = Buffer.from('m')
const mac = (value: Buffer): Buffer => createHmac('sha256', value).update(message).digest()
const newMac = async (hsm: Hsm) => {
  const value = randomBytes(64)
  return { value, key: await hsm.create(macTemplate({ value })) }
}

/** Takes the token away for a moment. */
async function interrupt(hsm: Hsm, shim: Shim): Promise<void> {
  const { epoch } = hsm
  shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  await expect((async () => hsm.random(1))()).rejects.toMatchObject({ status: 503 })
  await until(() => hsm.healthy)
  expect(hsm.epoch).toBeGreaterThan(epoch)
  shim.clear()
}

describe.each(executors)('under the %s executor', (executor) => {
  test('a handle of an earlier epoch is refused before the call, though its number now names another key', async () => {
    await using open = await openFaulty({ executor, threads: 1 })
    const { hsm, shim } = open
    const before = await newMac(hsm)
    await interrupt(hsm, shim)

    let other: { value: Buffer; key: Handle } | undefined
    for (let i = 0; i < 1000 && other === undefined; i++) {
      const made = await newMac(hsm)
      if (made.key.value.equals(before.key.value)) other = made
    }
    if (other === undefined) throw new Error('the token gave no number twice')

    // Without the guard: the old number signs with the other key.
    const lib = new pkcs11.PKCS11()
    lib.load(shim.library)
    const session = lib.C_OpenSession(hsm.token.slot, 6)
    lib.C_SignInit(session, { mechanism: hmac256.type }, before.key.value)
    expect(lib.C_Sign(session, message, Buffer.alloc(32))).toEqual(mac(other.value))
    lib.C_CloseSession(session)

    shim.set({ groups: group.sign })
    await expect((async () => hsm.sign(before.key, hmac256, message, 32))()).rejects.toBeInstanceOf(StaleHandle)
    expect(shim.read().counted).toBe(0)
    expect(await hsm.sign(other.key, hmac256, message, 32)).toEqual(mac(other.value))
    expect(shim.read().counted).toBe(2)
  })

  test('destroying a handle of an earlier epoch destroys nothing', async () => {
    await using open = await openFaulty({ executor, threads: 1 })
    const { hsm, shim } = open
    const before = await newMac(hsm)
    await interrupt(hsm, shim)
    const made = await Promise.all(Array.from({ length: 20 }, () => newMac(hsm)))
    await hsm.destroy(before.key)
    for (const { key, value } of made) expect(await hsm.sign(key, hmac256, message, 32)).toEqual(mac(value))
  })

  test('a destroyed handle is refused before the call', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    const { key } = await newMac(hsm)
    await hsm.destroy(key)
    await hsm.destroy(key)
    shim.set({ groups: group.sign })
    await expect((async () => hsm.sign(key, hmac256, message, 32))()).rejects.toBeInstanceOf(StaleHandle)
    expect(shim.read().counted).toBe(0)
  })

  test('an object somebody else destroyed is a stale handle, not a bug and not a lost token', async () => {
    await using open = await openFaulty({ executor })
    const { hsm } = open
    const id = randomBytes(8)
    const mine = await hsm.create(macTemplate({ value: randomBytes(64), id }))
    const [same] = await hsm.find({ id, token: false })
    if (same !== undefined) await hsm.destroy(same)
    await expect((async () => hsm.sign(mine, hmac256, message, 32))()).rejects.toBeInstanceOf(StaleHandle)
    expect(hsm.healthy).toBe(true)
  })
})

test('an object in use by a thread is destroyed only after its call', async () => {
  await using open = await openFaulty({ executor: 'threads', threads: 2 })
  const { hsm, shim } = open
  const id = randomBytes(8)
  const value = randomBytes(64)
  const key = await hsm.create(macTemplate({ value, id }))
  shim.set({ groups: group.sign, delayMicroseconds: 100_000 })
  const calls = Array.from({ length: 4 }, () => hsm.sign(key, hmac256, message, 32))
  expect(key.pins).toBe(4)
  await hsm.destroy(key)
  expect(key.state).toBe('doomed')
  for (const result of await Promise.all(calls)) expect(result).toEqual(mac(value))
  expect(key.state).toBe('gone')
  shim.clear()
  // The last call's thread destroys it; another thread's search may come first.
  await expect.poll(() => hsm.find({ id, token: false }), { timeout: 10_000 }).toEqual([])
})

test('a token object is named anew in each epoch, and its old handle does not destroy it', async () => {
  await using open = await openFaulty()
  const { hsm, shim } = open
  const id = randomBytes(8)
  const key = await hsm.create(macTemplate({ value: randomBytes(64), id, token: true }))
  await interrupt(hsm, shim)
  expect(() => hsm.destroy(key)).toThrow(StaleHandle)
  const [found] = await hsm.find({ id, token: true })
  if (found === undefined) throw new Error('the token object is gone')
  await hsm.destroy(found)
})
