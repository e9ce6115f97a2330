import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashes } from '../../src/crypto/hashes.ts'
import { CKR } from '../../src/hsm/constants.ts'
import type { Hsm } from '../../src/hsm/hsm.ts'
import { createShim, group, type Shim } from '../hsm/support/fault.ts'
import { createTestedToken } from '../support/template/keys.ts'
import { makeKey, none, openCluster, openHsm, Place } from './support.ts'

let shim: Shim
let hsm: Hsm

beforeAll(async () => {
  const token = await createTestedToken('lost')
  shim = await createShim(token.library)
  hsm = await openHsm({ ...token, library: shim.library })
}, 60_000)

afterAll(async () => {
  await hsm[Symbol.asyncDispose]()
  shim[Symbol.dispose]()
})

it('after the token was away every key is loaded again: rows, tokens, KEKs and materials', async () => {
  await using place = await Place.fresh()
  const custody = await openCluster(hsm, place)
  const keys = await Promise.all(
    ['aes256-gcm96', 'hmac', 'ed25519'].map((algorithm) => makeKey(custody, place.database, algorithm)),
  )
  const [cipher, secret, signer] = keys
  const sha256 = hashes.get('sha2-256')
  if (!cipher || !secret || !signer || !sha256) throw new Error('not made')
  const scheme = { hash: sha256, prehashed: false, padding: 'pss', saltLength: 'auto', marshaling: 'asn1' } as const
  const all = async () => ({
    plain: (await custody.operations.cipher.decrypt(cipher, sealed)).toString(),
    mac: await custody.operations.hmacs.mac(secret, sha256, Buffer.from('x')),
    signature: await custody.operations.signer.sign(signer, Buffer.from('x'), scheme),
    row: await custody.macs.rowMac.compute(Buffer.from('row')),
    token: await custody.macs.tokenMac(Buffer.from('token')),
  })
  const sealed = await custody.operations.cipher.encrypt(cipher, { plaintext: Buffer.from('hello') })
  const before = await all()
  const { epoch } = hsm

  shim.set({ groups: group.all & ~group.init, rv: CKR.DEVICE_REMOVED })
  await expect(all()).rejects.toMatchObject({ status: 503 })
  shim.clear()
  while (!hsm.healthy) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(hsm.epoch).toBeGreaterThan(epoch)

  expect(await all()).toEqual(before)
  await makeKey(custody, place.database, 'aes128-gcm96')
  custody.close()
}, 30_000)

it('a handle that the token has forgotten is loaded again, and the call is made once more', async () => {
  await using place = await Place.fresh()
  const custody = await openCluster(hsm, place)
  const material = await makeKey(custody, place.database, 'aes256-gcm96')
  const sealed = await custody.operations.cipher.encrypt(material, { plaintext: Buffer.from('hello') })
  shim.set({ groups: group.cipher, rv: CKR.OBJECT_HANDLE_INVALID, times: 1 })
  expect((await custody.operations.cipher.decrypt(material, sealed)).toString()).toBe('hello')
  shim.set({ groups: group.cipher, rv: CKR.OBJECT_HANDLE_INVALID })
  await expect((async () => custody.operations.cipher.decrypt(material, sealed))()).rejects.toMatchObject({
    status: 503,
  })
  shim.clear()
  custody.close()
})

it('a MAC key is loaded again from under a new system KEK when the old one is gone', async () => {
  await using place = await Place.fresh()
  const custody = await openCluster(hsm, place)
  const before = await custody.macs.tokenMac(Buffer.from('token'))
  await custody.rotation.announce('system')
  const lease = await place.database.jobLease(custody.rotation.job.name, 30)
  if (lease === undefined) throw new Error('no lease')
  await custody.rotation.advance(none, lease.fence)
  await custody.rotation.prove()
  await custody.rotation.advance(none, lease.fence)
  await custody.rotation.advance(none, lease.fence)
  const retiring = (await custody.rotation.status()).find(({ state }) => state === 'retiring')
  await custody.rotation.destroy(retiring?.id ?? '', 0)
  const row = await custody.macs.rowMac.compute(Buffer.from('row'))

  shim.set({ groups: group.sign, rv: CKR.KEY_HANDLE_INVALID, times: 1 })
  expect(await custody.macs.tokenMac(Buffer.from('token'))).toEqual(before)
  shim.set({ groups: group.sign, rv: CKR.KEY_HANDLE_INVALID, times: 1 })
  expect(await custody.macs.rowMac.compute(Buffer.from('row'))).toEqual(row)
  custody.close()
})
