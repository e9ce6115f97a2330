import { createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { expectRefused, fresh, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const read = (name: string) => node.root.get(`transit/keys/${name}`)

/** `data` of the key object, which these tests look into. */
async function described(name: string): Promise<KeyObject> {
  return ((await read(name)).body as { data: KeyObject }).data
}
interface KeyObject {
  readonly keys: Readonly<Record<string, { readonly name: string; readonly public_key: string }>>
  readonly custody: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

describe('reading a key', () => {
  test('has the same answer as its creation', async () => {
    const name = fresh('k')
    const made = await node.root.post(`transit/keys/${name}`, { type: 'ecdsa-p256' })
    const reply = await read(name)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({ ...(made.body as object), request_id: expect.any(String) })
  })

  test('is 404 with an empty list for a missing key', async () => {
    expectRefused(await read(fresh('k')), 404)
  })

  test.each([
    ['aes128-gcm96', true, true, false, true],
    ['aes256-gcm96', true, true, false, true],
    ['chacha20-poly1305', true, true, false, true],
    ['ed25519', false, false, true, true],
    ['ecdsa-p256', false, false, true, false],
    ['ecdsa-p384', false, false, true, false],
    ['ecdsa-p521', false, false, true, false],
    ['rsa-2048', true, true, true, false],
    ['hmac', false, false, false, false],
  ])('of type %s shows its abilities', async (type, encryption, decryption, signing, derivation) => {
    const name = await node.key({ type })
    expect(await described(name)).toMatchObject({
      type,
      supports_encryption: encryption,
      supports_decryption: decryption,
      supports_signing: signing,
      supports_derivation: derivation,
      keys: { 1: expect.anything() },
      custody: { 1: { residence: expect.stringMatching(/^(wrapped|enveloped|token)$/) } },
    })
  })

  test.each([
    ['ecdsa-p256', 'P-256', 'ec', 'prime256v1'],
    ['ecdsa-p384', 'P-384', 'ec', 'secp384r1'],
    ['ecdsa-p521', 'P-521', 'ec', 'secp521r1'],
    ['rsa-2048', 'rsa-2048', 'rsa', undefined],
  ])('of type %s shows its public key as PEM of an SPKI', async (type, entry, kind, curve) => {
    const name = await node.key({ type })
    expect((await described(name)).keys[1]).toEqual({
      name: entry,
      public_key: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n[\s\S]+-----END PUBLIC KEY-----\n$/),
      creation_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      certificate_chain: '',
    })
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey(
      (await described(name)).keys[1]?.public_key ?? '',
    )
    expect(asymmetricKeyType).toBe(kind)
    expect(asymmetricKeyDetails?.namedCurve).toBe(curve)
  })

  test('of type ed25519 shows its public key as base64 of 32 bytes', async () => {
    const name = await node.key({ type: 'ed25519' })
    const entry = (await described(name)).keys[1]
    expect(entry?.name).toBe('ed25519')
    expect(Buffer.from(entry?.public_key ?? '', 'base64')).toHaveLength(32)
  })

  test('shows the versions that may still decrypt, and the custody of each', async () => {
    const name = await node.key()
    await node.root.post(`transit/keys/${name}/rotate`)
    await node.root.post(`transit/keys/${name}/rotate`)
    await node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2 })
    const { keys, custody } = await described(name)
    expect(Object.keys(keys)).toEqual(['2', '3'])
    expect(Object.keys(custody)).toEqual(['2', '3'])
  })

  test('tells for an ed25519 key that the token could not wrap that its seed was in memory once', async () => {
    const name = await node.key({ type: 'ed25519' })
    const [custody] = Object.values((await described(name)).custody)
    if (custody?.residence === 'wrapped') expect(custody.ever_plaintext).toBe(false)
    else expect(custody).toMatchObject({ residence: 'enveloped', ever_plaintext: true })
  })

  test('never shows more than the public half', async () => {
    const name = await node.key({ type: 'rsa-2048', exportable: true })
    const { text } = await read(name)
    // Names, since a public key in base64 may read like anything.
    expect(text).not.toMatch(/PRIVATE|"[^"]*(blob|kek)[^"]*":/i)
  })
})
