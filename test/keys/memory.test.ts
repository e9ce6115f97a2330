import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { Remembered } from '../support/memory.ts'
import { createTestedToken } from '../support/template/keys.ts'
import type { TestToken } from '../support/token.ts'

let token: TestToken
beforeAll(async () => {
  token = await createTestedToken('memory')
}, 60_000)

/** Runs the fixture in a process of its own, whose memory it searches. */
async function leftovers(types: readonly string[], environment: Record<string, string> = {}): Promise<unknown> {
  const script = join(import.meta.dirname, 'fixtures/leftovers.ts')
  const options = { env: { ...process.env, ...environment } }
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(token), types.join()], options)
  return JSON.parse(stdout)
}

test('a secret that is not wiped is found, in either byte order', () => {
  const remembered = new Remembered()
  const [kept, wiped] = [randomBytes(48), randomBytes(48)]
  remembered.add('kept', kept)
  remembered.add('wiped', wiped)
  wiped.fill(0)
  expect(remembered.found()).toEqual(['kept'])
  kept.reverse()
  expect(remembered.found()).toEqual(['kept'])
  kept.fill(0)
  expect(remembered.found()).toEqual([])
}, 60_000)

const elliptic = ['ecdsa-p224', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519']

test('of a transient EC or Ed25519 pair nothing is left in memory', async () => {
  expect(await leftovers(elliptic)).toEqual([])
}, 120_000)

/**
 * pkcs11js frees the numbers of an RSA key without wiping them. Some of that memory is overwritten at once (hsm
 * reveal); all of it, if glibc is told to overwrite freed memory.
 */
test('of an RSA pair neither, where the allocator overwrites what is freed', async () => {
  expect(await leftovers(['rsa-2048', ...elliptic], { GLIBC_TUNABLES: 'glibc.malloc.perturb=90' })).toEqual([])
}, 120_000)
