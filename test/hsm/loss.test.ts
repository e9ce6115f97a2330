import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { CKR } from '../../src/hsm/constants.ts'
import { HsmRefusal, PinRefused } from '../../src/hsm/faults.ts'
import type { Handle } from '../../src/hsm/handle.ts'
import { group } from './support/fault.ts'
import { openFaulty, until } from './support/faulty.ts'
import { executors, hmac256, macTemplate, newAes, newDirectory, openHsm } from './support/open.ts'

const message = Buffer.from('m')

describe.each(executors)('under the %s executor', (executor) => {
  test('a token that is pulled and put back: 503 meanwhile, then service in a new epoch', async () => {
    await using open = await openFaulty({ executor, threads: 2 })
    const { hsm, shim } = open
    const value = randomBytes(64)
    let key: Handle | undefined
    const load = async (): Promise<void> => {
      key = await hsm.create(macTemplate({ value }))
    }
    await load()
    const heard: number[] = []
    hsm.onEpoch(async (epoch) => {
      expect(hsm.healthy).toBe(false)
      heard.push(epoch)
      await load()
    })
    const { epoch } = hsm
    const sign = async () => hsm.sign(key as Handle, hmac256, message, 32)
    const before = await sign()

    shim.set({ groups: group.all & ~group.init, rv: CKR.DEVICE_REMOVED })
    const answers = await Promise.allSettled(Array.from({ length: 20 }, sign))
    for (const answer of answers) expect(answer).toMatchObject({ status: 'rejected', reason: { status: 503 } })
    expect(hsm.healthy).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, 1200))
    expect(hsm.healthy).toBe(false)
    expect(heard).toEqual([])

    const { logins } = shim.read()
    shim.clear()
    await until(() => hsm.healthy)
    expect(hsm.epoch).toBeGreaterThan(epoch)
    expect(heard).toEqual([hsm.epoch])
    expect(await sign()).toEqual(before)
    expect(shim.read().logins).toBe(logins + 1)
  })

  test('DEVICE_ERROR, or any doubtful code, for one input is a refusal; the token stays on line', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
    const { epoch } = hsm
    for (const rv of [CKR.DEVICE_ERROR, CKR.GENERAL_ERROR, CKR.FUNCTION_FAILED, 0x80000123]) {
      shim.set({ groups: group.sign, rv, times: 1 })
      const error = await (async () => hsm.sign(key, hmac256, message, 32))().catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(HsmRefusal)
      expect(error).toMatchObject({ code: rv })
      expect(hsm.healthy).toBe(true)
      expect(await hsm.sign(key, hmac256, message, 32)).toHaveLength(32)
    }
    expect(hsm.epoch).toBe(epoch)
  })

  test('DEVICE_ERROR from everything is a lost token', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
    shim.set({ groups: group.all & ~group.init, rv: CKR.DEVICE_ERROR })
    await expect((async () => hsm.sign(key, hmac256, message, 32))()).rejects.toBeInstanceOf(ApiError)
    expect(hsm.healthy).toBe(false)
    shim.clear()
    await until(() => hsm.healthy)
  })

  test('a keeper that is gone means that its objects are: the session error is then a loss', async () => {
    await using open = await openFaulty({ executor, threads: 1 })
    const { hsm, shim } = open
    const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
    const { epoch } = hsm
    // Sign fails for its session, and so does asking about the keeper.
    shim.set({ groups: group.sign | group.session, rv: CKR.SESSION_HANDLE_INVALID, times: 4 })
    await expect((async () => hsm.sign(key, hmac256, message, 32))()).rejects.toMatchObject({ status: 503 })
    await until(() => hsm.healthy)
    expect(hsm.epoch).toBeGreaterThan(epoch)
  })

  test('nothing is asked of a lost token before it is back', async () => {
    await using open = await openFaulty({ executor })
    const { hsm, shim } = open
    const key = await newAes(hsm, ['encrypt'])
    shim.set({ groups: group.all & ~group.init, rv: CKR.TOKEN_NOT_PRESENT })
    await expect((async () => hsm.random(1))()).rejects.toMatchObject({ status: 503 })
    shim.set({ groups: group.cipher | group.random | group.key, rv: CKR.TOKEN_NOT_PRESENT })
    const calls = [async () => hsm.random(1), async () => newAes(hsm, []), async () => hsm.attributes(key, ['id'])]
    for (const call of calls) await expect(call()).rejects.toMatchObject({ status: 503 })
    expect(shim.read().counted).toBe(0)
    shim.clear()
    await until(() => hsm.healthy)
  })
})

test('a PIN that is refused after the token was away is tried once; then the process must exit', async () => {
  await using open = await openFaulty({ stateDirectory: newDirectory() })
  const { hsm, shim, fatal } = open
  shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  await expect((async () => hsm.random(1))()).rejects.toMatchObject({ status: 503 })
  shim.set({ groups: group.login, rv: CKR.PIN_INCORRECT })
  expect(await fatal).toBeInstanceOf(PinRefused)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(shim.read().counted).toBe(1)
  expect(hsm.healthy).toBe(false)
  shim.clear()
})

test('a subscriber that cannot rebuild its handles keeps the HSM off line until it can', async () => {
  await using open = await openFaulty()
  const { hsm, shim } = open
  let attempts = 0
  hsm.onEpoch(() => {
    attempts++
    if (attempts === 1) throw new Error('the KEK is not to be found')
  })
  shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  await expect((async () => hsm.random(1))()).rejects.toMatchObject({ status: 503 })
  await until(() => attempts === 1)
  expect(hsm.healthy).toBe(false)
  expect(() => hsm.random(1)).toThrow('not available')
  await until(() => hsm.healthy)
  expect(attempts).toBe(2)
})

test('a token that is lost again while handles are rebuilt is fetched once more', async () => {
  await using open = await openFaulty()
  const { hsm, shim } = open
  let attempts = 0
  hsm.onEpoch(() => {
    attempts++
    if (attempts === 1) shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
    return Promise.resolve(hsm.random(1)).then(() => {})
  })
  shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  await expect((async () => hsm.random(1))()).rejects.toMatchObject({ status: 503 })
  await until(() => hsm.healthy)
  expect(attempts).toBe(2)
})

test('another Hsm on the module whose sessions were ended with ours comes back too', async () => {
  await using one = await openFaulty()
  await using two = await openHsm({ library: one.shim.library })
  const key = await two.hsm.create(macTemplate({ value: randomBytes(64) }))
  const epochs = [one.hsm.epoch, two.hsm.epoch]
  one.shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  expect(() => one.hsm.random(1)).toThrow('not available')
  await until(() => one.hsm.healthy && two.hsm.healthy && two.hsm.epoch > (epochs[1] ?? 0))
  expect(one.hsm.epoch).toBeGreaterThan(epochs[0] ?? 0)
  expect(() => two.hsm.sign(key, hmac256, message, 32)).toThrow('loaded again')
  expect(await two.hsm.random(4)).toHaveLength(4)
})

test('a call that hangs in a thread ends the process', async () => {
  await using open = await openFaulty({ executor: 'threads', callDeadlineMilliseconds: 200 })
  const { hsm, shim, fatal } = open
  await hsm.random(1)
  shim.set({ groups: group.random, delayMicroseconds: 1_000_000, times: 1 })
  const hung = Promise.resolve(hsm.random(1))
  expect((await fatal).message).toMatch(/hangs: random/)
  await hung
})

test('the module is not pulled away under a call that is still inside', async () => {
  await using open = await openFaulty({ executor: 'threads', threads: 2 })
  const { hsm, shim } = open
  const key = await hsm.create(macTemplate({ value: randomBytes(64) }))
  shim.set({ groups: group.sign, delayMicroseconds: 5_000_000, times: 1 })
  const slow = Promise.resolve(hsm.sign(key, hmac256, message, 32))
  await until(() => shim.read().hit === 1)
  const { epoch } = hsm
  shim.set({ groups: group.random, rv: CKR.DEVICE_REMOVED, times: 1 })
  await expect(Promise.resolve(hsm.random(1))).rejects.toMatchObject({ status: 503 })
  await new Promise((resolve) => setTimeout(resolve, 400))
  expect(hsm.epoch).toBe(epoch)
  expect(await slow).toHaveLength(32)
  await until(() => hsm.healthy)
  expect(hsm.epoch).toBeGreaterThan(epoch)
})
