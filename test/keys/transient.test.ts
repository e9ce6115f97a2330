import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { traditionalForm } from '../../src/crypto/privatekey.ts'
import { ApiError } from '../../src/errors.ts'
import type { Ability } from '../../src/hsm/capabilities.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { PairAlgorithm } from '../../src/keys/algorithms/algorithm.ts'
import { algorithmOf, pairAlgorithm } from '../../src/keys/algorithms.ts'
import { type TransientPair, TransientPairs, type TransientPairsOptions } from '../../src/keys/making/transient.ts'
import { Approval } from '../../src/keys/use/approval.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { until } from '../hsm/support/faulty.ts'
import { decrypted } from '../support/intermediates.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { clock, openHsm } from './support.ts'

let hsm: Hsm
let shim: Shim

beforeAll(async () => {
  const token = await createTestedToken('transient')
  shim = await createShim(token.library)
  hsm = await openHsm({ ...token, library: shim.library })
}, 60_000)
afterAll(async () => {
  await hsm[Symbol.asyncDispose]()
  shim[Symbol.dispose]()
})

const made: TransientPairs[] = []
const pairsWith = (more: Partial<TransientPairsOptions> = {}): TransientPairs => {
  const ground = { hsm, clock, capabilities: hsm.capabilities, approval: new Approval(false), strict: false }
  const pairs = new TransientPairs({ ...ground, ...more })
  made.push(pairs)
  return pairs
}
afterEach(async () => {
  for (const pairs of made.splice(0)) pairs[Symbol.dispose]()
  // A pair being made ahead is destroyed once it is made.
  await waitFor(async () => expect(await objects()).toBe(0))
})

/** As if the token lacked these abilities. */
const lacking = (...abilities: readonly Ability[]): TransientPairs => {
  const supports = (ability: Ability) => !abilities.includes(ability) && hsm.capabilities.supports(ability)
  const require = (ability: Ability) => {
    if (!supports(ability)) throw new ApiError(400, `the HSM lacks ${hsm.capabilities.missing(ability)}`)
  }
  return pairsWith({ capabilities: { supports, require } })
}
const reading = ['read-rsa', 'read-ec', 'read-ed25519'] as const
const objects = async (): Promise<number> => (await hsm.find({ token: false })).length
const message = Buffer.from('message')
const hashOf = (type: string) => (type === 'ed25519' ? null : 'sha256')

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await clock.sleep(20)
}
const waitFor = async (check: () => Promise<void>): Promise<void> => {
  for (let turn = 0; turn < 100; turn++) {
    try {
      return await check()
    } catch {
      await clock.sleep(20)
    }
  }
  await check()
}

function expectKey({ pkcs8, publicKey }: TransientPair): void {
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  expect(createPublicKey(key).equals(publicKey)).toBe(true)
}

/** Makes one, and has OpenSSL sign and verify by its two halves. */
async function expectPair(pairs: TransientPairs, type: string) {
  const pair = await pairs.make(type)
  const algorithm = pairAlgorithm(type)
  if (algorithm === undefined) throw new Error(`${type} is no type of pairs`)
  // Those made ahead stay, two objects each, and one of an earlier test may still come and go.
  await waitFor(async () => {
    const ahead = pairs.stock.count(algorithm)
    expect(await objects()).toBe(2 * ahead)
  })
  expect(pair.algorithm).toBe(type)
  const key = createPrivateKey({ key: pair.pkcs8, format: 'der', type: 'pkcs8' })
  expect(createPublicKey(key).equals(pair.publicKey)).toBe(true)
  expect(pair.publicKey.export({ format: 'der', type: 'spki' })).toEqual(pair.spki)
  expect(verify(hashOf(type), message, pair.publicKey, sign(hashOf(type), message, key))).toBe(true)
  return pair
}

const wrappable = ['rsa-2048', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521'] as const

describe('a transient pair', () => {
  test.each([...wrappable, 'ed25519'])(
    'of %s is read from its attributes, and is gone from the token',
    async (type) => {
      await expectPair(pairsWith(), type)
      const [one, other] = [await pairsWith().make(type), await pairsWith().make(type)]
      expect(one.spki.equals(other.spki)).toBe(false)
    },
  )

  test.each(wrappable)('of %s is wrapped and opened where the token shows no private keys', async (type) => {
    await expectPair(lacking(...reading), type)
  })

  test.each(wrappable)('of %s that was wrapped and opened leaves nothing of that on the host', async (type) => {
    const given = await decrypted(() => lacking(...reading).make(type))
    expect(given.map((bytes) => bytes.every((byte) => byte === 0))).toEqual([true])
  })

  test('of Ed25519 is made of the token’s randomness where it lacks the algorithm, but not in strict mode', async () => {
    await expectPair(lacking('eddsa'), 'ed25519')
    const strict = pairsWith({
      strict: true,
      capabilities: { supports: () => false, require: hsm.capabilities.require },
    })
    await expect(strict.make('ed25519')).rejects.toThrow()
  })

  test('that the token neither shows nor wraps is refused by the mechanism’s name', async () => {
    await expect(lacking(...reading, 'wrap-rsa').make('rsa-2048')).rejects.toMatchObject({
      status: 400,
      message: 'the HSM lacks CKM_AES_KEY_WRAP_KWP of RSA keys',
    })
    await expect(lacking(...reading).make('ed25519')).rejects.toMatchObject({ status: 400 })
    // A pair that an earlier test had made ahead may be here for a moment.
    await waitFor(async () => expect(await objects()).toBe(0))
  })

  test('is none of a secret, of an unknown type, or in FIPS mode of Ed25519', async () => {
    await expect(pairsWith().make('aes256-gcm96')).rejects.toMatchObject({ status: 400 })
    await expect(pairsWith().make('dsa')).rejects.toMatchObject({ status: 400, message: 'unknown key type dsa' })
    const fips = pairsWith({ approval: new Approval(true) })
    await expect(fips.make('ed25519')).rejects.toMatchObject({ status: 400 })
  })

  const generalError = 0x05
  test.each([
    // The public key and the private one, each asked for its length and its value.
    ['read from its attributes', pairsWith, group.object, 4],
    // C_GenerateKeyPair, C_CreateObject of the key to wrap it under, C_WrapKey.
    ['made or wrapped', () => lacking(...reading), group.key, 3],
  ])('that cannot be %s leaves nothing in the token', async (_, pairs, groups, calls) => {
    const before = await objects()
    for (let nth = 1; nth <= calls; nth++) {
      shim.set({ groups, rv: generalError, every: nth, times: 1 })
      await expect(pairs().make('ecdsa-p256'), `call ${nth}`).rejects.toThrow()
      shim.clear()
      // A pair that another test had made ahead may come and go.
      await expect.poll(objects, { message: `call ${nth}` }).toBe(before)
    }
  })
})

describe('RSA pairs are kept ready', () => {
  const rsa = algorithmOf('rsa-2048') as PairAlgorithm
  const most = 8

  test('as objects of the token, so many and no more, and go with their end', async () => {
    const before = await objects()
    let pausing = 0
    const sleep = async (milliseconds: number) => {
      pausing += 1
      await clock.sleep(milliseconds)
      pausing -= 1
    }
    const pairs = pairsWith({ clock: { ...clock, sleep } })
    const first = await pairs.make('rsa-2048')
    await until(() => pairs.stock.count(rsa) === most)
    // It does not continue.
    expect(pausing).toBe(0)
    expect(await objects()).toBe(before + 2 * most)
    const more = await Promise.all(Array.from({ length: most + 2 }, () => pairs.make('rsa-2048')))
    expect(new Set([first, ...more].map(({ spki }) => spki.toString('hex'))).size).toBe(most + 3)
    await until(() => pairs.stock.count(rsa) === most)
    pairs[Symbol.dispose]()
    await waitFor(async () => expect(await objects()).toBe(before))
    expect(pairs.stock.count(rsa)).toBe(0)
  }, 60_000)

  test('of no type that nobody asked for, and none of those that are quick to make', async () => {
    const pairs = pairsWith()
    await pairs.make('ecdsa-p256')
    await turns(20)
    expect(['rsa-2048', 'ecdsa-p256'].map((type) => pairs.stock.count(algorithmOf(type) as PairAlgorithm))).toEqual([
      0, 0,
    ])
  })

  test('and are made anew when the token has forgotten them', async () => {
    const pairs = pairsWith()
    await pairs.make('rsa-2048')
    await until(() => pairs.stock.count(rsa) > 0)
    const { epoch } = hsm
    shim.set({ groups: group.all, rv: 0x32 })
    await expect((async () => hsm.random(8))()).rejects.toMatchObject({ status: 503 })
    shim.clear()
    await until(() => hsm.healthy && hsm.epoch !== epoch)
    expect(pairs.stock.count(rsa)).toBe(0)
    expectKey(await pairs.make('rsa-2048'))
  }, 60_000)
})

test('an EC pair does not wait for RSA pairs in the making', async () => {
  const pairs = pairsWith()
  const ended: string[] = []
  const note = (type: string) => pairs.make(type).then(() => void ended.push(type))
  await Promise.all([note('rsa-2048'), note('rsa-2048'), note('rsa-2048'), note('ecdsa-p256'), note('ed25519')])
  expect(ended.slice(0, 2).toSorted()).toEqual(['ecdsa-p256', 'ed25519'])
})

describe('the file of a private key', () => {
  test.each([
    ['rsa-2048', 'RSA PRIVATE KEY', 'pkcs1'],
    ['ecdsa-p384', 'EC PRIVATE KEY', 'sec1'],
  ] as const)('of %s has the form %s', async (type, label, form) => {
    const { pkcs8 } = await pairsWith().make(type)
    const file = traditionalForm(pkcs8)
    expect(file.label).toBe(label)
    const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
    expect(createPrivateKey({ key: file.der, format: 'der', type: form }).equals(key)).toBe(true)
    pkcs8.fill(0)
    expect(file.der.every((byte) => byte === 0)).toBe(true)
  })

  test('of Ed25519 is PKCS#8', async () => {
    const { pkcs8 } = await pairsWith().make('ed25519')
    expect(traditionalForm(pkcs8)).toEqual({ label: 'PRIVATE KEY', der: pkcs8 })
  })
})
