import { tmpdir } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { ManagedHsms } from '../../src/keys/managed/hsms.ts'
import { Tries } from '../../src/system/tries.ts'
import { clock, log, openHsm } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { createToken, type TestToken } from '../support/token.ts'

/** Who is let in to a token of managed keys, and when. */

let token: TestToken
let sibling: TestToken
let own: Hsm
beforeAll(async () => {
  token = await createTestedToken('own')
  sibling = await createToken('sibling')
  own = await openHsm(token)
}, 60_000)
afterAll(() => own?.[Symbol.asyncDispose]())

const at = ({ label }: TestToken) => ({ library: 'same', slot: null, tokenLabel: label })

/** @param compare runs while a token is compared with ours, after the login */
function openManaged(compare: () => Promise<void> = async () => {}): ManagedHsms {
  const { library } = token
  const onFatal = (reason: Error): void => {
    throw reason
  }
  const libraries = [{ name: 'same', library, environment: {}, threads: 2, callDeadlineMilliseconds: 10_000 }]
  const tries = new Tries({ workers: 1, clock, allowed: { tries: 2, in: 'an hour', atOnce: 2 } }, 'wrong PINs')
  const ownIds = () => compare().then(() => [])
  const ground = { own, tries, ownAllowed: true, stateDirectory: tmpdir(), log, clock, ownIds, onFatal }
  return new ManagedHsms({ ...ground, libraries })
}

test('after too many wrong PINs of our own token a caller is not told the right one, though it is in use', async () => {
  await using hsms = openManaged()
  expect(await hsms.open(at(token), token.pin)).toBe(own)
  const guess = async (pin: string) => hsms.admit(at(token), pin)
  for (let count = 0; count < 2; count++) await expect(guess('wrong')).rejects.toThrow('wrong PIN')
  await expect(guess(token.pin)).rejects.toMatchObject({ status: 429 })
  expect(await hsms.open(at(token), token.pin)).toBe(own)
}, 60_000)

test('a token that was closed is opened again, and not given out as it was', async () => {
  await using hsms = openManaged()
  const first = await hsms.open(at(sibling), sibling.pin)
  expect(await hsms.open(at(sibling), sibling.pin)).toBe(first)
  await first[Symbol.asyncDispose]()
  expect(hsms.peek(at(sibling))).toBeUndefined()
  const second = await hsms.open(at(sibling), sibling.pin)
  expect(second).not.toBe(first)
  expect(second.healthy).toBe(true)
}, 60_000)

test('whoever asks at whatever moment of an opening is given the one token that is opened', async () => {
  const { promise: loggedIn, resolve: enter } = Promise.withResolvers<void>()
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  await using hsms = openManaged(async () => {
    enter()
    await gate
  })
  const ask = async () => hsms.open(at(sibling), sibling.pin)
  const asked = [ask()]
  await loggedIn
  release()
  for (let moment = 0; moment < 50; moment++) {
    asked.push(ask())
    await Promise.resolve()
  }
  const given = await Promise.all(asked)
  expect(new Set(given).size).toBe(1)
  expect(given[0]?.healthy).toBe(true)
}, 60_000)

test('a token that was made after this process began is unavailable, with an explanation', async () => {
  await using hsms = openManaged()
  const late = await createToken('late')
  await expect(hsms.open(at(late), late.pin)).rejects.toMatchObject({
    status: 503,
    message: `the token "${late.label}" of library same was made after this server began, which sees it after a restart`,
  })
}, 60_000)
