import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { CKR } from '../../src/hsm/constants.ts'
import { fateOf, HsmRefusal } from '../../src/hsm/faults.ts'
import { group } from './support/fault.ts'
import { openFaulty, until } from './support/faulty.ts'
import { executors, gcm, hmac256, macTemplate, newAes, newRsa } from './support/open.ts'

describe.each(executors)('under the %s executor', (executor) => {
  test('thousands of forged ciphertexts leave the pool as it was', async () => {
    await using open = await openFaulty({ executor, threads: 2 })
    const { hsm, shim } = open
    const key = await newAes(hsm, ['encrypt', 'decrypt'])
    const iv = randomBytes(12)
    const good = await hsm.encrypt(key, gcm(iv), Buffer.from('good'))
    const { opened, closed } = shim.read()
    for (let i = 0; i < 2000; i++) {
      const bad = Buffer.from(good)
      const at = i % good.length
      bad[at] = (bad[at] ?? 0) ^ (1 + (i % 255))
      const form = i % 4 === 0 ? bad.subarray(0, i % good.length) : bad
      await expect((async () => hsm.decrypt(key, gcm(iv), form))()).rejects.toBeInstanceOf(HsmRefusal)
      if (i % 100 === 0) expect((await hsm.decrypt(key, gcm(iv), good)).toString()).toBe('good')
    }
    expect(hsm.healthy).toBe(true)
    const now = shim.read()
    expect(now.opened - now.closed).toBeLessThanOrEqual(opened - closed + 2)
  })

  test('after a forged tag the session goes on, and the token is not asked each time', async () => {
    await using open = await openFaulty({ executor, threads: 1 })
    const { hsm, shim } = open
    const key = await newAes(hsm, ['encrypt', 'decrypt'])
    const iv = randomBytes(12)
    const good = await hsm.encrypt(key, gcm(iv), Buffer.from('good'))
    const bad = Buffer.from(good.map((byte, at) => byte ^ (at === good.length - 1 ? 1 : 0)))
    const forge = async () => hsm.decrypt(key, gcm(iv), bad)
    await expect(forge()).rejects.toBeInstanceOf(HsmRefusal)
    const { opened } = shim.read()
    // Counted, not failed.
    shim.set({ groups: group.info | group.session, times: 0 })
    for (let i = 0; i < 500; i++) await expect(forge()).rejects.toBeInstanceOf(HsmRefusal)
    const now = shim.read()
    shim.clear()
    expect(hsm.capabilities.forgedTag).toBeDefined()
    expect(now.opened).toBe(opened)
    // One look at the session for each; the token itself is asked now and then.
    expect(now.counted).toBeLessThan(2 * 500)
    expect((await hsm.decrypt(key, gcm(iv), good)).toString()).toBe('good')
  })

  test('a session that is gone, or a token that was not asked for a while, is a loss and no forged tag', async () => {
    for (const asked of [group.session, group.info]) {
      await using open = await openFaulty({ executor, threads: 1 })
      const { hsm, shim } = open
      const key = await newAes(hsm, ['encrypt', 'decrypt'])
      const iv = randomBytes(12)
      const good = await hsm.encrypt(key, gcm(iv), Buffer.from('good'))
      // A code that does not tell whether the token is there: the one of a forged tag, if it is such a code.
      const { forgedTag = CKR.DEVICE_ERROR } = hsm.capabilities
      const rv = fateOf(forgedTag) === 'doubt' ? forgedTag : CKR.DEVICE_ERROR
      shim.set({ groups: group.cipher | asked, rv })
      await expect((async () => hsm.decrypt(key, gcm(iv), good))()).rejects.toMatchObject({ status: 503 })
      expect(hsm.healthy).toBe(false)
      shim.clear()
      await until(() => hsm.healthy)
    }
  })

  test('a tampered blob is refused, and the keeper keeps every other object', async () => {
    await using open = await openFaulty({ executor, threads: 2 })
    const { hsm } = open
    const { kwp } = hsm.capabilities
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const blob = await hsm.wrap(kek, kwp, await newAes(hsm, ['encrypt'], { extractable: true }))
    for (let i = 0; i < 200; i++) {
      const bad = Buffer.from(blob)
      bad[i % blob.length] = (bad[i % blob.length] ?? 0) ^ 0x80
      const form = i % 3 === 0 ? bad.subarray(0, i % blob.length) : bad
      const template = { class: 'secret', keyType: 0x1f, usages: ['encrypt'] } as const
      await expect((async () => hsm.unwrap(kek, kwp, form, template))()).rejects.toBeInstanceOf(HsmRefusal)
    }
    expect(hsm.healthy).toBe(true)
    expect(await hsm.wrap(kek, kwp, await newAes(hsm, ['encrypt'], { extractable: true }))).toHaveLength(40)
  })

  test.each([3, 4, 7])('every %ith call failing for its session is not seen by anyone', async (every) => {
    await using open = await openFaulty({ executor, threads: 2 })
    const { hsm, shim } = open
    const { kwp } = hsm.capabilities
    const kek = await newAes(hsm, ['wrap', 'unwrap'])
    const groups = group.cipher | group.sign | group.key | group.digest | group.random | group.object
    shim.set({ groups, rv: CKR.SESSION_HANDLE_INVALID, every })
    const { epoch } = hsm
    const key = await newAes(hsm, ['encrypt', 'decrypt'], { extractable: true })
    for (let i = 0; i < 50; i++) {
      const iv = randomBytes(12)
      const sealed = await hsm.encrypt(key, gcm(iv), Buffer.from('x'))
      expect((await hsm.decrypt(key, gcm(iv), sealed)).toString()).toBe('x')
      const blob = await hsm.wrap(kek, kwp, key)
      const copy = await hsm.unwrap(kek, kwp, blob, { class: 'secret', keyType: 0x1f, usages: ['encrypt'] })
      await hsm.destroy(copy)
      await hsm.random(8)
    }
    expect(shim.read().hit).toBeGreaterThan(10)
    expect(hsm.healthy).toBe(true)
    expect(hsm.epoch).toBe(epoch)
    shim.clear()
  })

  test('a token that stays short of memory is a 503 after one more try, and is not lost', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    shim.set({ groups: group.random, rv: CKR.DEVICE_MEMORY, times: 1 })
    expect(await hsm.random(8)).toHaveLength(8)
    shim.set({ groups: group.random, rv: CKR.DEVICE_MEMORY })
    await expect((async () => hsm.random(8))()).rejects.toMatchObject({ status: 503 })
    expect(shim.read().hit).toBe(2)
    expect(hsm.healthy).toBe(true)
    shim.clear()
    expect(await hsm.random(8)).toHaveLength(8)
  })

  test('what leaves an object behind is not repeated when it may have run', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    shim.set({ groups: group.key, rv: CKR.DEVICE_MEMORY, times: 1 })
    await expect(newAes(hsm, ['encrypt'])).rejects.toMatchObject({ status: 503 })
    expect(shim.read().counted).toBe(1)
    shim.clear()
  })

  test('no more sessions than two for each thread, whatever the load', async () => {
    await using open = await openFaulty({ executor, threads: 3 })
    const { hsm, shim } = open
    const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
    const { privateKey } = await newRsa(hsm)
    const before = shim.read()
    const calls = Array.from({ length: 300 }, async (_, i) =>
      i % 10 === 0
        ? hsm.sign(privateKey, { type: 1 }, Buffer.alloc(32), 256)
        : hsm.sign(key, hmac256, Buffer.alloc(9), 32),
    )
    await Promise.all(calls)
    const after = shim.read()
    expect(after.opened - after.closed).toBeLessThanOrEqual(before.opened - before.closed + 6)
  })
})

test('making an RSA key pair leaves the event loop free', async () => {
  await using open = await openFaulty({ executor: 'inline', threads: 1 })
  const { hsm, shim } = open
  const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
  shim.set({ groups: group.key, delayMicroseconds: 1_000_000 })
  let done = false
  const pair = newRsa(hsm).finally(() => {
    done = true
  })
  let turns = 0
  while (!done) {
    expect(hsm.sign(key, hmac256, Buffer.from([turns & 255]), 32)).toHaveLength(32)
    turns++
    await new Promise((resolve) => setImmediate(resolve))
  }
  // Had the call been made here, the loop would not have turned while it lasted.
  expect(turns).toBeGreaterThan(20)
  await pair
})
