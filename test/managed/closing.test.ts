import { tmpdir } from 'node:os'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Cryptoki, loadLibrary } from '../../src/hsm/binding.ts'
import { CKR } from '../../src/hsm/constants.ts'
import { ckrOf } from '../../src/hsm/faults.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { ManagedHsms } from '../../src/keys/managed/hsms.ts'
import { Tries } from '../../src/system/tries.ts'
import { group, type Shim } from '../hsm/support/fault.ts'
import { clock, log, openHsm } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { createFaulty, createForeign, type Foreign } from './tool.ts'

/** Nobody stays logged in to a token of managed keys: not after the end, nor after an opening that fails. */

let own: Hsm
let foreign: Foreign
let shim: Shim
let environment: Record<string, string>
let module: Cryptoki

beforeAll(async () => {
  own = await openHsm(await createTestedToken('own'))
  foreign = await createForeign()
  ;({ shim, environment } = await createFaulty(foreign))
  const { SOFTHSM2_CONF: _, ...shimmed } = environment
  Object.assign(process.env, shimmed)
  module = loadLibrary(shim.library)
}, 60_000)
afterAll(async () => {
  await own?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})
beforeEach(() => shim.clear())

const address = () => ({ library: 'far', slot: null, tokenLabel: foreign.label })

function openManaged(ownIds: () => Promise<readonly Buffer[]> = async () => [Buffer.from('none')]): ManagedHsms {
  const onFatal = (reason: Error): void => {
    throw reason
  }
  const library = { library: shim.library, environment, threads: 2, callDeadlineMilliseconds: 2000 }
  const tries = new Tries({ workers: 1, clock }, 'wrong PINs')
  const ground = { own, tries, ownAllowed: false, stateDirectory: tmpdir(), log, clock, ownIds, onFatal }
  return new ManagedHsms({ ...ground, libraries: [{ name: 'far', ...library }] })
}

/** Whether this process uses the token's module. Its only user logs in, and its end ends every login. */
const inUse = (): boolean => {
  try {
    module.C_GetInfo()
    return true
  } catch (error) {
    if (ckrOf(error) === CKR.CRYPTOKI_NOT_INITIALIZED) return false
    throw error
  }
}

test('an opening that is under way at the end is refused, and the end waits for its child', async () => {
  const hsms = openManaged()
  const before = shim.read()
  shim.set({ groups: group.login, delayMicroseconds: 300_000, times: 1 })
  const opened = Promise.allSettled([hsms.open(address(), foreign.pin)])
  await expect.poll(() => shim.read().hit, { interval: 5, timeout: 10_000 }).toBe(1)
  await hsms[Symbol.asyncDispose]()
  const after = shim.read()
  expect(after.closed - before.closed).toBe(after.opened - before.opened)
  expect(await opened).toMatchObject([{ status: 'rejected', reason: { status: 503 } }])
  expect(shim.read().logins - before.logins).toBe(1)
  expect(hsms.peek(address())).toBeUndefined()
  expect(inUse()).toBe(false)
})

test('so is one that has logged in already', async () => {
  const { promise: loggedIn, resolve: enter } = Promise.withResolvers<void>()
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  const hsms = openManaged(async () => {
    enter()
    await gate
    return []
  })
  const opened = Promise.allSettled([hsms.open(address(), foreign.pin)])
  await loggedIn
  expect(inUse()).toBe(true)
  const end = hsms[Symbol.asyncDispose]()
  release()
  await end
  expect(inUse()).toBe(false)
  expect(await opened).toMatchObject([{ status: 'rejected', reason: { status: 503 } }])
})

test('after the end no token is opened, neither a new one nor one that was open', async () => {
  const hsms = openManaged()
  await hsms.open(address(), foreign.pin)
  await hsms[Symbol.asyncDispose]()
  const refusal = { status: 503, message: 'the tokens of managed keys are closed' }
  await expect((async () => hsms.open(address(), foreign.pin))()).rejects.toMatchObject(refusal)
  await expect((async () => hsms.open({ ...address(), slot: 0 }, foreign.pin))()).rejects.toMatchObject(refusal)
  expect(inUse()).toBe(false)
})

test('a token that fails after the login is closed again', async () => {
  await using hsms = openManaged()
  shim.set({ groups: group.object, rv: CKR.GENERAL_ERROR })
  await expect(hsms.open(address(), foreign.pin)).rejects.toThrow()
  expect(shim.read().hit).toBeGreaterThan(0)
  expect(inUse()).toBe(false)
  shim.clear()
  expect((await hsms.open(address(), foreign.pin)).healthy).toBe(true)
  expect(inUse()).toBe(true)
})

test('so is one whose keys could not be compared with ours', async () => {
  await using hsms = openManaged(() => Promise.reject(new Error('no database')))
  await expect(hsms.open(address(), foreign.pin)).rejects.toThrow('no database')
  expect(inUse()).toBe(false)
})

test('a token that hangs after the login holds up neither the refusal nor the end', async () => {
  const hsms = openManaged()
  shim.set({ groups: group.object, delayMicroseconds: 9_000_000, times: 1 })
  const began = Date.now()
  await expect(hsms.open(address(), foreign.pin)).rejects.toMatchObject({ status: 503 })
  await hsms[Symbol.asyncDispose]()
  expect(Date.now() - began).toBeLessThan(8000)
  await expect.poll(inUse, { timeout: 20_000 }).toBe(false)
}, 40_000)
