import { constants, generateKeyPairSync, publicEncrypt, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashOf } from '../../src/crypto/hashes.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import type { Custody } from '../../src/keys/custody.ts'
import { keyWrap } from '../api/transit/envelope.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { makeKey, openCluster, openHsm, Place } from '../keys/support.ts'
import { createTestedToken } from '../support/template/keys.ts'

/**
 * Transport keys, which wrap other keys between host and token or for another server, are random numbers of the token.
 */
let shim: Shim
let hsm: Hsm
let place: Place
let custody: Custody
beforeAll(async () => {
  const token = await createTestedToken('transport')
  shim = await createShim(token.library)
  hsm = await openHsm({ ...token, library: shim.library })
  place = await Place.fresh()
  custody = await openCluster(hsm, place)
}, 120_000)
afterAll(async () => {
  custody?.close()
  await place?.[Symbol.asyncDispose]()
  await hsm?.[Symbol.asyncDispose]()
  shim?.[Symbol.dispose]()
})

/** Calls of C_GenerateRandom during the work. */
async function drawn(work: () => Promise<unknown>): Promise<number> {
  shim.set({ groups: group.random, times: 0 })
  await work()
  const { counted } = shim.read()
  shim.clear()
  return counted
}

test('a pair that is brought into the token draws one', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' })
  expect(await drawn(() => custody.authorityKeys.prepareImported(pkcs8, 'me'))).toBe(1)
})

test('a pair that is exported draws one', async () => {
  const material = await makeKey(custody, place.database, 'ecdsa-p256', { exportable: true })
  expect(await drawn(() => custody.transfer.keyExport.open(material, () => {}))).toBe(1)
})

test('a key that goes to another server draws one, which is wiped', async () => {
  let lent: Buffer = Buffer.alloc(0)
  const draw = () =>
    custody.transfer.keyExport.lendTransport(async (transport) => {
      lent = transport
      expect(transport.every((byte) => byte === 0)).toBe(false)
      expect(transport).toHaveLength(32)
    })
  expect(await drawn(draw)).toBe(1)
  expect(lent).toEqual(Buffer.alloc(32))
})

test('an import draws the one that a wrong padding would give, whether the padding is wrong or not', async () => {
  const mount = randomUUID()
  const wrapping = await custody.transfer.keyImport.wrappingKey(mount, 'me')
  const transport = randomBytes(32)
  const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
  const head = publicEncrypt({ key: wrapping.publicKey, ...padding }, transport)
  const ciphertext = Buffer.concat([head, keyWrap(transport, randomBytes(32))])
  const wanted = { algorithm: 'aes256-gcm96', part: 'key', exportable: false, createdBy: 'me' } as const
  const bring = () => custody.transfer.keyImport.prepare(wanted, { mount, hash: hashOf('sha2-256'), ciphertext })
  expect(await drawn(bring)).toBe(1)
  ciphertext.fill(0, 0, 8)
  expect(await drawn(() => expect(bring()).rejects.toThrow('cannot be unwrapped'))).toBe(1)
})
