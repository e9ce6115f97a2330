import { constants, createHash, publicDecrypt, verify } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectRefused, hello, useSharedNode } from '../../node.ts'
import { bytesOf, hashNames, opensslVerifies, publicKeyOf } from '../../signing.ts'

const node = useSharedNode()
const message = Buffer.from('hello')
let name: string
beforeAll(async () => {
  name = await node.key({ type: 'rsa-2048' })
})
const sign = (body: Record<string, unknown>) => node.root.post(`transit/sign/${name}`, { input: hello, ...body })
const signature = async (body: Record<string, unknown> = {}) => (await done(sign(body))).string('data.signature')
const accepts = async (signature: string, body: Record<string, unknown> = {}) => {
  const reply = await node.root.post(`transit/verify/${name}`, { input: hello, signature, ...body })
  return (reply.body as { data?: { valid: boolean } }).data?.valid
}
/** Whether node:crypto takes it as PSS with exactly this salt. */
async function saltedWith(text: string, hash: string, saltLength: number): Promise<boolean> {
  const key = { key: await publicKeyOf(node.root, name), padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }
  return verify(hash, message, key, bytesOf(text))
}

describe('RSA-PSS', () => {
  test.each(hashNames)(
    'with %s and the largest salt is the default, and verifies by node:crypto',
    async (hash_algorithm, hash) => {
      const text = await signature({ hash_algorithm })
      const bytes = createHash(hash).digest().length
      expect(await saltedWith(text, hash, 256 - bytes - 2)).toBe(true)
      expect(await accepts(text, { hash_algorithm })).toBe(true)
    },
  )

  test.each([
    ['auto', 222],
    ['AUTO', 222],
    ['0', 222],
    [0, 222],
    ['hash', 32],
    [-1, 32],
    ['-1', 32],
    [1, 1],
    ['20', 20],
    [222, 222],
  ])('with salt_length %j has %i bytes of salt', async (salt_length, bytes) => {
    const text = await signature({ salt_length })
    expect(await saltedWith(text, 'sha256', bytes)).toBe(true)
    expect(await accepts(text)).toBe(true)
    expect(await accepts(text, { salt_length })).toBe(true)
    expect(await accepts(text, { salt_length: 21 })).toBe(false)
  })

  test.each([223, 9999])('with salt_length %i does not fit', async (salt_length) => {
    expectRefused(await sign({ salt_length }), 400, `requested salt length ${salt_length} is invalid`)
  })

  test('of a digest is as of the input, and a digest of the wrong length is refused', async () => {
    const input = base64(createHash('sha512').update(message).digest())
    const text = await signature({ input, prehashed: true, hash_algorithm: 'sha2-512', salt_length: 'hash' })
    expect(await saltedWith(text, 'sha512', 64)).toBe(true)
    expect(await accepts(text, { hash_algorithm: 'sha2-512' })).toBe(true)
    expectRefused(await sign({ input, prehashed: true }), 400, 'crypto/rsa: input must be hashed with given hash')
  })
})

describe('RSA PKCS#1 v1.5', () => {
  const pkcs1 = { signature_algorithm: 'pkcs1v15' }

  test.each(hashNames)('with %s verifies by node:crypto', async (hash_algorithm, hash) => {
    const text = await signature({ ...pkcs1, hash_algorithm })
    expect(verify(hash, message, await publicKeyOf(node.root, name), bytesOf(text))).toBe(true)
    expect(await accepts(text, { ...pkcs1, hash_algorithm })).toBe(true)
    expect(await accepts(text, { hash_algorithm })).toBe(false)
  })

  test('without hash signs the input as it is, without the digest’s OID', async () => {
    const none = { ...pkcs1, hash_algorithm: 'none', prehashed: true }
    const text = await signature(none)
    const key = { key: await publicKeyOf(node.root, name), padding: constants.RSA_PKCS1_PADDING }
    expect(publicDecrypt(key, bytesOf(text)).toString()).toBe('hello')
    expect(await accepts(text, none)).toBe(true)
    expect(await accepts(text, { ...none, input: base64('other') })).toBe(false)
    const long = base64(Buffer.alloc(246))
    expectRefused(await sign({ ...none, input: long }), 400, 'crypto/rsa: message too long for RSA key size')
  })

  test('in the JWS alphabet is the same signature', async () => {
    const standard = bytesOf(await signature(pkcs1))
    const jws = await signature({ ...pkcs1, marshaling_algorithm: 'jws' })
    expect(bytesOf(jws, 'base64url')).toEqual(standard)
    expect(await accepts(jws, { ...pkcs1, marshaling_algorithm: 'jws' })).toBe(true)
  })
})

test('openssl confirms both paddings', async () => {
  const key = await publicKeyOf(node.root, name)
  const padding = (mode: string) =>
    [
      'pkeyutl',
      '-verify',
      '-rawin',
      '-digest',
      'sha256',
      '-pkeyopt',
      `rsa_padding_mode:${mode}`,
      '-pubin',
      '-inkey',
    ] as const
  expect(opensslVerifies(key, message, bytesOf(await signature()), padding('pss'))).toBe(true)
  const pkcs1 = await signature({ signature_algorithm: 'pkcs1v15' })
  expect(opensslVerifies(key, message, bytesOf(pkcs1), padding('pkcs1'))).toBe(true)
  expect(opensslVerifies(key, Buffer.from('other'), bytesOf(pkcs1), padding('pkcs1'))).toBe(false)
})
