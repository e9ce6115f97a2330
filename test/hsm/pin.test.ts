import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { CKF } from '../../src/hsm/constants.ts'
import { PinRefused } from '../../src/hsm/faults.ts'
import { login } from '../../src/hsm/session/login.ts'
import { type Trial, trialStatus } from '../../src/hsm/trial/trial.ts'
import type { Shim } from './support/fault.ts'
import { theShim } from './support/faulty.ts'
import { newDirectory, openHsm, theToken } from './support/open.ts'

const script = fileURLToPath(new URL('../../src/hsm/trial/trial.ts', import.meta.url))
let shim: Shim
let trial: Trial
beforeAll(async () => {
  const { libraryParameters, label, pin } = await theToken()
  shim = await theShim()
  const parameters = libraryParameters === undefined ? {} : { libraryParameters }
  trial = { library: shim.library, ...parameters, token: { label }, pin }
})

/** Runs the script; `logins` counts the calls of C_Login. */
async function run(input: string): Promise<{ status: number; said: string; logins: number }> {
  const before = shim.read().logins
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => {})
  child.stdin.write(`${input}\n`) // and left open: the script reads one line
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { status, said: out + err, logins: shim.read().logins - before }
}
const attempt = (changes: Partial<Trial>) => run(JSON.stringify({ ...trial, ...changes }))

test('the right PIN exits 0 after one login', async () => {
  expect(await attempt({})).toEqual({ status: trialStatus.good, said: '', logins: 1 })
})

test('a wrong PIN is tried once and never said', async () => {
  const result = await attempt({ pin: 'wrong-pin-4711' })
  expect(result).toMatchObject({ status: trialStatus.wrongPin, logins: 1 })
  expect(result.said).not.toContain('4711')
})

test('a refused PIN is remembered over restarts, until another one is given or an operator insists', async () => {
  const stateDirectory = newDirectory()
  const bad = { pin: 'wrong-pin-4711', stateDirectory }
  expect(await attempt(bad)).toMatchObject({ status: trialStatus.wrongPin, logins: 1 })
  for (let i = 0; i < 3; i++) expect(await attempt(bad)).toMatchObject({ status: trialStatus.wrongPin, logins: 0 })
  await expect(openHsm({ library: shim.library, ...bad })).rejects.toBeInstanceOf(PinRefused)
  expect(await attempt({ ...bad, force: true })).toMatchObject({ status: trialStatus.wrongPin, logins: 1 })
  expect(await attempt({ stateDirectory })).toMatchObject({ status: trialStatus.good, logins: 1 })
  const kept = readdirSync(stateDirectory).map((name) => readFileSync(`${stateDirectory}/${name}`, 'utf8'))
  expect(kept.join()).not.toContain('4711')
})

test('a refused PIN that cannot be stored is not tried again by the process, and counts as refused', async () => {
  const { serial, label } = (await theTokenInfo()).token
  const stateDirectory = newDirectory()
  const bad = { library: shim.library, pin: 'wrong-pin-4712', stateDirectory }
  // No file can take the place of a directory.
  const name = `refused-pin-${Buffer.from(`${serial}/${label}`).toString('hex')}.json`
  mkdirSync(`${stateDirectory}/${name}/taken`, { recursive: true })
  const before = shim.read().logins
  await expect(openHsm(bad)).rejects.toThrow(/^wrong PIN, which could not be remembered/)
  for (let i = 0; i < 3; i++) await expect(openHsm(bad)).rejects.toBeInstanceOf(PinRefused)
  expect(shim.read().logins - before).toBe(1)
  await using _good = await openHsm({ library: shim.library, stateDirectory })
})

/** The token as the module shows it. */
async function theTokenInfo() {
  await using open = await openHsm({ library: shim.library })
  return { token: open.hsm.token }
}

test('a token that is not there is said to be missing, without a login', async () => {
  expect(await attempt({ token: { label: 'nobody' } })).toMatchObject({ status: trialStatus.tokenMissing, logins: 0 })
  expect(await attempt({ token: { serial: 'feedfacefeedface' } })).toMatchObject({ status: 5, logins: 0 })
})

test('a module that does not load fails without a login', async () => {
  expect(await attempt({ library: '/nonexistent/p11.so' })).toMatchObject({ status: trialStatus.failed, logins: 0 })
})

test('input that is no JSON fails and is not quoted, since it may hold the PIN', async () => {
  const { status, said } = await run('{"pin":"secret-4711"')
  expect(status).toBe(trialStatus.failed)
  expect(said).not.toContain('4711')
})

test.each([
  ['locked', CKF.USER_PIN_LOCKED],
  ['on its final try', CKF.USER_PIN_FINAL_TRY],
])('nothing is tried on a token that is %s, unless an operator insists', async (_, flags) => {
  await using open = await openHsm({ library: shim.library })
  const { token } = open.hsm
  const asked: string[] = []
  const lib = { C_Login: (_session: Buffer, _user: number, pin: string) => asked.push(pin) } as unknown as Parameters<
    typeof login
  >[0]
  const flagged = { ...token, flags: token.flags | flags }
  expect(() => login(lib, Buffer.alloc(8), flagged, 'pin', {})).toThrow(PinRefused)
  expect(asked).toEqual([])
  login(lib, Buffer.alloc(8), flagged, 'pin', { force: true })
  expect(asked).toEqual(['pin'])
})
