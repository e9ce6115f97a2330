import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { CKM } from '../../src/hsm/constants.ts'
import { executors, newAes, newP256, newRsa, openHsm } from './support/open.ts'

const pkcs1 = { type: CKM.RSA_PKCS }

describe.each(executors)('beside RSA key pairs in the making, under the %s executor', (executor) => {
  test('no secret key, no RSA signature and no EC pair waits for them', async () => {
    await using open = await openHsm({ executor, threads: 2 })
    const { hsm } = open
    const { privateKey } = await newRsa(hsm)
    const ended: string[] = []
    const note = (name: string) => () => void ended.push(name)
    const pairs = Promise.all(Array.from({ length: 8 }, () => newRsa(hsm))).then(note('RSA pairs'))
    await newAes(hsm, ['encrypt']).then(note('AES key'))
    await (async () => hsm.sign(privateKey, pkcs1, Buffer.from('digest'), 256))().then(note('RSA signature'))
    await newP256(hsm).then(note('EC pair'))
    await pairs
    expect(ended.at(-1)).toBe('RSA pairs')
    expect(ended).toHaveLength(4)
  }, 120_000)
})

test('more RSA key pairs than may wait are refused with 503 before any work', async () => {
  const refused: unknown[] = []
  const open = await openHsm({ executor: 'inline', threads: 2 })
  const waiting = Array.from({ length: 103 }, () => newRsa(open.hsm).catch((error) => void refused.push(error)))
  await setImmediate()
  expect(refused).toHaveLength(2)
  for (const error of refused) {
    expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1, message: 'the HSM has too much to do' })
  }
  // Disposing the Hsm rejects the waiting calls, and waits for the running one.
  await open[Symbol.asyncDispose]()
  await Promise.race(waiting)
}, 120_000)
