import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { importKey } from '../envelope.ts'

const node = useSharedNode()
const sequence = Buffer.from(Array.from({ length: 32 }, (_, index) => index))
const context = base64('ctx')
/** "hello" under keys 00 01 02 …, by the reference (wire document B10): its nonce is convergent, its key HKDF's. */
const vectors = [
  ['aes256-gcm96', 32, 'vault:v1:lWKSXdmbVSRfvnjOQq3bSZxF/6PpMLWQhccjS5lezPYT'],
  ['aes128-gcm96', 16, 'vault:v1:/luZusOC4aSmQ2HaRH71vSmXQwMAJO+4nyhwxfJfE2Ni'],
] as const

describe.each(vectors)('an imported derived key of type %s', (type, bytes, ciphertext) => {
  test('decrypts ciphertexts of the reference, but only under the same context', async () => {
    const name = fresh('k')
    await importKey(node.root, name, sequence.subarray(0, bytes), { type, derived: true, context })
    expectData(await node.root.post(`transit/decrypt/${name}`, { ciphertext, context }), { plaintext: hello })
    const other = await node.root.post(`transit/decrypt/${name}`, { ciphertext, context: base64('cty') })
    expectRefused(other, 400, 'cipher: message authentication failed')
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { derived: true, kdf: 'hkdf_sha256', imported_key: true },
    })
  })
})

/** PKCS#8 of an Ed25519 seed (RFC 8410). */
const pkcs8Of = (seed: Uint8Array) => Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
const pointOf = (seed: Uint8Array): Buffer => {
  const key = createPrivateKey({ key: pkcs8Of(seed), format: 'der', type: 'pkcs8' })
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
}

test('an imported derived ed25519 key signs with the key of HKDF over seed and public key', async () => {
  const name = fresh('k')
  await importKey(node.root, name, pkcs8Of(sequence), { type: 'ed25519', derived: true, context })
  const root = Buffer.concat([sequence, pointOf(sequence)])
  const seed = Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), 'ctx', 32))
  const signed = await node.root.post(`transit/sign/${name}`, { input: hello, context })
  expect(signed.string('data.public_key')).toBe(pointOf(seed).toString('base64'))
  const signature = signed.string('data.signature')
  expectData(await node.root.post(`transit/verify/${name}`, { input: hello, context, signature }), { valid: true })
})
