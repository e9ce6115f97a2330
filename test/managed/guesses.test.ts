import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { ManagedHsms } from '../../src/keys/managed/hsms.ts'
import { Tries } from '../../src/system/tries.ts'
import { done, expectRefused, fresh, hello } from '../api/node.ts'
import { clock, log, openHsm } from '../keys/support.ts'
import { startServer } from '../support/server.ts'
import { createToken, type TestToken } from '../support/token.ts'
import { makeEc } from './tool.ts'
import { at } from './world.ts'

/** The PIN of the server's own token, where managed keys may lie in it: few guesses, which the token never sees. */

const exhausted = /this node takes 30 wrong PINs of its own token in an hour: try again in \d+ s/

test('five wrong PINs in a row are told as such, then not even the right one is compared', async () => {
  const library = '/usr/lib/softhsm/libsofthsm2.so'
  await using server = await startServer({
    config: { pkcs11Libraries: [{ name: 'same', library }] },
    environment: { STRONGROOM_PKCS11_MANAGED_KEYS: 'true' },
  })
  const { token } = server
  await makeEc(token, 'ec', 'e0')
  const root = server.client()
  const settings = { library: 'same', token_label: token.label, mechanism: '0x1041', key_label: 'ec', any_mount: true }
  const write = (pin: string) => root.post(at(fresh('mk')), { ...settings, pin })
  const managed_key_name = fresh('mk')
  await done(root.post(at(managed_key_name), { ...settings, pin: token.pin }))
  const key = fresh('k')
  await done(root.post(`transit/keys/${key}`, { type: 'managed_key', managed_key_name }))
  for (let count = 0; count < 2; count++) await done(write(token.pin))

  for (let guess = 0; guess < 5; guess++) {
    expectRefused(await write(`wrong${guess}`), 400, 'wrong PIN; it is not tried again')
  }
  for (const pin of ['wrong5', 'wrong6', token.pin]) {
    const { status, text, headers } = await write(pin)
    expect(status, text).toBe(429)
    expect(text).toMatch(exhausted)
    expect(Number(headers['retry-after'])).toBeGreaterThan(60)
  }
  // A key that is in use stays in use.
  await done(root.post(`transit/sign/${key}`, { input: hello }))
}, 120_000)

describe('the allowance of a worker', () => {
  let token: TestToken
  let own: Hsm
  beforeAll(async () => {
    token = await createToken('own')
    own = await openHsm(token)
  }, 60_000)
  afterAll(() => own?.[Symbol.asyncDispose]())

  /** One of the two workers of a node, whose time stands still until told otherwise. */
  function worker() {
    let passed = 0
    const still = { ...clock, monotonic: () => passed }
    const onFatal = (reason: Error): void => {
      throw reason
    }
    const { library } = token
    const libraries = [{ name: 'same', library, environment: {}, threads: 2, callDeadlineMilliseconds: 10_000 }]
    const allowed = { tries: 30, in: 'an hour', atOnce: 5 } as const
    const tries = new Tries({ workers: 2, clock: still, allowed }, 'wrong PINs of its own token')
    const ground = { own, tries, ownAllowed: true, stateDirectory: tmpdir(), log, onFatal, ownIds: async () => [] }
    return {
      hsms: new ManagedHsms({ ...ground, libraries, clock: still }),
      pass: (seconds: number) => {
        passed += seconds * 1000
      },
    }
  }
  const address = () => ({ library: 'same', slot: null, tokenLabel: token.label })

  test('is of wrong PINs alone, and comes back with time', async () => {
    const { hsms, pass } = worker()
    const name = async (pin: string) => hsms.admit(address(), pin)
    for (let count = 0; count < 2; count++) expect(await name(token.pin)).toBe(own)
    for (let count = 0; count < 5; count++) await expect(name('wrong')).rejects.toThrow('wrong PIN')
    const refusal = { status: 429, retryAfterSeconds: 240, message: expect.stringMatching(exhausted) }
    await expect(name('wrong')).rejects.toMatchObject(refusal)
    pass(239)
    await expect(name(token.pin)).rejects.toMatchObject({ status: 429, retryAfterSeconds: 1 })
    pass(1)
    expect(await name(token.pin)).toBe(own)
    await expect(name('wrong')).rejects.toThrow('wrong PIN')
    await expect(name(token.pin)).rejects.toMatchObject({ status: 429 })
  }, 90_000)

  test('is not needed by PINs that were stored, nor by keys in use', async () => {
    const { hsms } = worker()
    for (let count = 0; count < 5; count++) {
      await expect((async () => hsms.admit(address(), 'wrong'))()).rejects.toThrow('wrong PIN')
    }
    expect(await hsms.open(address(), token.pin)).toBe(own)
    await expect((async () => hsms.admit(address(), token.pin))()).rejects.toMatchObject({ status: 429 })
    expect(hsms.peek(address())).toBe(own)
    expect(await hsms.open(address(), token.pin)).toBe(own)
  }, 90_000)
})
