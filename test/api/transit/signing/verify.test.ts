import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'
import { bytesOf } from '../../signing.ts'

const node = useSharedNode()
let key: string
let signature: string
let hmac: string

beforeAll(async () => {
  key = await node.key({ type: 'ecdsa-p256' })
  signature = (await done(node.root.post(`transit/sign/${key}`, { input: hello }))).string('data.signature')
  hmac = (await done(node.root.post(`transit/hmac/${key}`, { input: hello }))).string('data.hmac')
})
const verify = (body: Record<string, unknown>, url = '') =>
  node.root.post(`transit/verify/${key}${url}`, { input: hello, ...body })

describe('verifying a signature', () => {
  test('tells whether it is the key’s, and a wrong one is not an error', async () => {
    expectData(await verify({ signature }), { valid: true })
    expectData(await verify({ signature, input: base64('other') }), { valid: false })
    expectData(await verify({ signature, hash_algorithm: 'sha2-512' }), { valid: false })
    expectData(await verify({ signature }, '/sha2-512'), { valid: false })
    const other = await node.key({ type: 'ecdsa-p256' })
    expectData(await node.root.post(`transit/verify/${other}`, { input: hello, signature }), { valid: false })
  })

  test('of a digest is as of the input', async () => {
    const input = base64(createHash('sha256').update('hello').digest())
    expectData(await verify({ signature, input, prehashed: true }), { valid: true })
    expectData(await verify({ signature, input: hello, prehashed: true }), { valid: false })
  })

  test('in JWS form takes a wrong length as a wrong signature', async () => {
    const jws = { marshaling_algorithm: 'jws' }
    const signed = await node.root.post(`transit/sign/${key}`, { input: hello, ...jws })
    const text = signed.string('data.signature')
    expectData(await verify({ ...jws, signature: text }), { valid: true })
    expectData(await verify({ ...jws, signature: text.slice(0, -4) }), { valid: false })
    // Standard base64, not base64url: one signature in a hundred has none of the characters that differ.
    expectRefused(
      await verify({ ...jws, signature: `vault:v1:${'+/'.repeat(48)}` }),
      400,
      'invalid base64 signature value',
    )
  })

  test('finds a signature wrong with any byte changed', async () => {
    const bytes = bytesOf(signature)
    for (const at of bytes.keys()) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      const reply = await verify({ signature: `vault:v1:${base64(changed)}` })
      expect(reply.body, `byte ${at}`).not.toMatchObject({ data: { valid: true } })
      expect([200, 400]).toContain(reply.status)
    }
  })

  test.each([
    [{}, "neither a 'signature' nor an 'hmac' were given to verify"],
    [{ signature: '', hmac: '' }, "neither a 'signature' nor an 'hmac' were given to verify"],
    [{ signature: 'x' }, 'invalid signature: no prefix'],
    [{ signature: 'vault:v1' }, 'invalid signature: wrong number of fields'],
    [{ signature: 'vault:vx:AAAA' }, 'invalid signature: version number could not be decoded'],
    [{ signature: 'vault:v2:AAAA' }, 'invalid signature: version is too new'],
    [{ signature: 'vault:v0:AAAA' }, 'ciphertext or signature version is disallowed by policy (too old)'],
    [{ signature: 'vault:v1:A' }, 'invalid base64 signature value'],
    [{ signature: 'vault:v1:AAAA' }, 'supplied signature is invalid'],
    [{ signature: 'vault:v1:AAAA', input: undefined }, 'missing input'],
    [
      { signature: 'vault:v1:AAAA', input: '!' },
      'unable to decode input as base64: illegal base64 data at input byte 0',
    ],
    [{ signature: 'vault:v1:AAAA', hash_algorithm: 'md5' }, 'invalid hash algorithm "md5"'],
  ])('with %j is refused: %s', async (body, text) => {
    expectRefused(await verify(body), 400, text)
  })

  test('with bytes after its end, or by a key that cannot sign, is refused', async () => {
    const longer = `vault:v1:${base64(Buffer.concat([bytesOf(signature), Buffer.from([0])]))}`
    expectRefused(await verify({ signature: longer }), 400, 'supplied signature contains extra data')
    const reply = await node.root.post(`transit/verify/${await node.key()}`, { input: hello, signature })
    expectRefused(reply, 400, 'key type aes256-gcm96 does not support verification')
  })
})

describe('verifying an HMAC', () => {
  test('tells whether it is the key’s, with the hash it was made with', async () => {
    expectData(await verify({ hmac }), { valid: true })
    expectData(await verify({ hmac, signature: '' }), { valid: true })
    expectData(await verify({ hmac, input: base64('other') }), { valid: false })
    expectData(await verify({ hmac, algorithm: 'sha2-512' }), { valid: false })
    expectData(await verify({ hmac, algorithm: 'sha2-512' }, '/sha2-256'), { valid: true })
    expectData(await verify({ hmac: hmac.slice(0, -4) }), { valid: false })
  })

  test.each([
    [{ hmac: 'x' }, 'invalid HMAC to verify: no prefix'],
    [{ hmac: 'vault:v1' }, 'invalid HMAC: wrong number of fields'],
    [{ hmac: 'vault:vx:AAAA' }, 'invalid HMAC: version number could not be decoded'],
    [{ hmac: 'vault:v2:AAAA' }, 'invalid HMAC: version is too new'],
    [{ hmac: 'vault:v0:AAAA' }, 'cannot verify HMAC: version is too old (disallowed by policy)'],
    [{ hmac: 'vault:v1:!' }, 'unable to decode verification HMAC as base64: illegal base64 data at input byte 0'],
    [{ hmac: 'vault:v1:AAAA', algorithm: 'none' }, 'unsupported algorithm "none"'],
    [{ hmac: 'vault:v1:AAAA', signature: 'vault:v1:AAAA' }, "provide one of 'signature' or 'hmac'"],
  ])('with %j is refused: %s', async (body, text) => {
    expectRefused(await verify(body), 400, text)
  })
})

test('a version below the minimum no longer verifies', async () => {
  const name = await node.key({ type: 'ed25519' })
  const made = { input: hello, signature: '', hmac: '' }
  made.signature = (await node.root.post(`transit/sign/${name}`, { input: hello })).string('data.signature')
  made.hmac = (await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')
  await done(node.root.post(`transit/keys/${name}/rotate`))
  await done(node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2 }))
  const check = (body: Record<string, unknown>) => node.root.post(`transit/verify/${name}`, { input: hello, ...body })
  const old = 'ciphertext or signature version is disallowed by policy (too old)'
  expectRefused(await check({ signature: made.signature }), 400, old)
  const text = 'cannot verify HMAC: version is too old (disallowed by policy)'
  expectRefused(await check({ hmac: made.hmac }), 400, text)
})

test('a key that does not exist is named as the reference names it', async () => {
  const missing = (body: Record<string, unknown>) => node.root.post('transit/verify/nokey', { input: hello, ...body })
  expectRefused(await missing({ signature: 'x' }), 400, 'signature verification key not found')
  expectRefused(await missing({ hmac: 'x' }), 400, 'encryption key not found')
})
