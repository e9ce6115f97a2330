import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashes } from '../../src/crypto/hashes.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { algorithms } from '../../src/keys/algorithms.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { createToken } from '../support/token.ts'
import { makeKey, openCluster, openHsm, Place } from './support.ts'

/** Keys on their way out of the token and into it. */

let hsm: Hsm
let place: Place
let custody: Custody
beforeAll(async () => {
  hsm = await openHsm(await createToken('transfer'))
  place = await Place.fresh()
  custody = await openCluster(hsm, place)
}, 60_000)
afterAll(async () => {
  custody.close()
  await place[Symbol.asyncDispose]()
  await hsm[Symbol.asyncDispose]()
})

const sessionObjects = async () =>
  (await Promise.all((['secret', 'private'] as const).map((one) => hsm.find({ class: one, token: false })))).flat()
    .length

describe('a secret opened for one use', () => {
  it.each(['aes256-gcm96', 'chacha20-poly1305', 'hmac'])(
    'of type %s is wiped in memory and destroyed in the token, whether the use succeeds or fails',
    async (algorithm) => {
      const material = await makeKey(custody, place.database, algorithm, { exportable: true })
      const before = await sessionObjects()
      const lent: Buffer[] = []
      const use = async (fails: boolean) =>
        custody.managed.blobs.open(material, async (secret) => {
          expect(secret.every((byte) => byte === 0)).toBe(false)
          expect(await sessionObjects()).toBe(before + 1)
          lent.push(secret)
          if (fails) throw new Error('the use failed')
        })
      await use(false)
      await expect(use(true)).rejects.toThrow('the use failed')
      expect(lent.map((secret) => secret.every((byte) => byte === 0))).toEqual([true, true])
      expect(await sessionObjects()).toBe(before)
    },
  )
})

describe.each([...algorithms.keys()])('a key of type %s', (algorithm) => {
  it('that is not exportable leaves neither in clear nor under a key of the caller', async () => {
    const material = await makeKey(custody, place.database, algorithm)
    const seen: unknown[] = []
    await expect(
      (async () => custody.transfer.keyExport.open(material, (key) => void seen.push(key)))(),
    ).rejects.toThrow()
    await expect((async () => custody.transfer.keyExport.wrapUnder(material, randomBytes(32)))()).rejects.toThrow()
    expect(seen).toEqual([])
  })

  it('that is exportable leaves nothing behind in the token', async () => {
    const material = await makeKey(custody, place.database, algorithm, { exportable: true })
    const before = await sessionObjects()
    await custody.transfer.keyExport.open(material, ({ kind }) => expect(['secret', 'pair']).toContain(kind))
    expect((await custody.transfer.keyExport.wrapUnder(material, randomBytes(32))).length).toBeGreaterThan(16)
    expect(await sessionObjects()).toBe(before)
  })
})

it('the wrapping key of a mount decrypts, and the token lets it do nothing else', async () => {
  const wrapping = await custody.transfer.keyImport.wrappingKey(randomUUID(), 'me')
  const usages = ['decrypt', 'sign', 'unwrap', 'extractable', 'modifiable'] as const
  const shown = await custody.objects.handles.use(wrapping, (key) => hsm.attributes(key, usages))
  expect(shown).toEqual({ decrypt: true, sign: false, unwrap: false, extractable: false, modifiable: false })
  const hash = hashes.get('sha2-256')
  if (hash === undefined) throw new Error('no SHA-256')
  const scheme = { hash, prehashed: false, padding: 'pkcs1v15', saltLength: 'auto', marshaling: 'asn1' } as const
  await expect((async () => custody.operations.signer.sign(wrapping, Buffer.from('x'), scheme))()).rejects.toThrow()
})
