import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { PairAlgorithm } from '../../../src/keys/algorithms/algorithm.ts'
import { algorithmOf } from '../../../src/keys/algorithms.ts'
import { readPair, writePkcs8 } from '../../../src/keys/making/pair.ts'
import { destroyPair, generateReadable, readTokenPair } from '../../../src/keys/making/readable.ts'
import { type OpenHsm, openHsm } from '../../hsm/support/open.ts'

/** Copies of private keys that are zeros again once their work is done. */

let open: OpenHsm
beforeAll(async () => {
  open = await openHsm()
}, 60_000)
afterAll(() => open?.[Symbol.asyncDispose]())

const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0)

test('what a seed becomes inside a PKCS#8 is wiped, and the seed itself is left to its owner', async () => {
  const algorithm = algorithmOf('ed25519') as PairAlgorithm
  const key = generateKeyPairSync('ed25519').privateKey
  const pair = await readPair(algorithm, key.export({ format: 'der', type: 'pkcs8' }))
  const seed = Buffer.from(pair.inner)
  const writing = vi.spyOn(algorithm.privateKey, 'write')
  try {
    const pkcs8 = writePkcs8(pair)
    const written = writing.mock.results.map(({ value }) => value as Buffer)
    expect(written.map((bytes) => bytes.length)).toEqual([2 + seed.length])
    expect(written.filter(isZero)).toHaveLength(1)
    expect(pair.inner).toEqual(seed)
    expect(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).equals(key)).toBe(true)
  } finally {
    writing.mockRestore()
  }
})

// Other modules show no private keys.
const softhsm = process.env.STRONGROOM_TEST_HSM === undefined

test.runIf(softhsm).each(['rsa-2048', 'ecdsa-p256'])(
  'what the token shows of a pair to be handed out is wiped: %s',
  async (type) => {
    const { hsm } = open
    const { capabilities } = hsm
    const algorithm = algorithmOf(type) as PairAlgorithm
    const tokenPair = await generateReadable({ hsm, capabilities }, algorithm)
    const revealing = vi.spyOn(hsm, 'reveal')
    try {
      const { inner } = await readTokenPair({ hsm, capabilities }, algorithm, tokenPair)
      const shown = await Promise.all(revealing.mock.results.map(({ value }) => value))
      const values = shown.flatMap((one) => Object.values(one as Record<string, Buffer>))
      expect(values.length).toBeGreaterThan(0)
      expect(values.filter((value) => !isZero(value))).toEqual([])
      expect(isZero(inner)).toBe(false)
    } finally {
      revealing.mockRestore()
      await destroyPair(hsm, tokenPair)
    }
  },
)
