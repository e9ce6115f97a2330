import { createPublicKey, verify } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'
import { bytesOf } from '../../signing.ts'

const node = useSharedNode()
let name: string
const context = base64('signer 1')
const other = base64('signer 2')
const missing = /^missing 'context' for key derivation/

beforeAll(async () => {
  name = await node.key({ type: 'ed25519', derived: true })
})

const sign = (body: Record<string, unknown>) => node.root.post(`transit/sign/${name}`, body)
const check = (body: Record<string, unknown>) => node.root.post(`transit/verify/${name}`, body)
const keyOf = (text: string) => {
  const x = Buffer.from(text, 'base64').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

describe('signing with a derived ed25519 key', () => {
  test('answers the public key under both of its names, and anybody can verify with it', async () => {
    const reply = await sign({ input: hello, context })
    const point = expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/)
    const signature = expect.stringMatching(/^vault:v1:/)
    expectData(reply, { signature, key_version: 1, publickey: point, public_key: point })
    expect(reply.string('data.publickey')).toBe(reply.string('data.public_key'))
    const key = keyOf(reply.string('data.public_key'))
    expect(verify(null, Buffer.from('hello'), key, bytesOf(reply.string('data.signature')))).toBe(true)
  })

  test('gives the same signature for the same context and input, and another key for another context', async () => {
    const [first, again, second] = [
      await sign({ input: hello, context }),
      await sign({ input: hello, context }),
      await sign({ input: hello, context: other }),
    ]
    expect(again.string('data.signature')).toBe(first.string('data.signature'))
    expect(second.string('data.signature')).not.toBe(first.string('data.signature'))
    expect(second.string('data.public_key')).not.toBe(first.string('data.public_key'))
  })

  test('is verified under its context alone', async () => {
    const signature = (await sign({ input: hello, context })).string('data.signature')
    expectData(await check({ input: hello, context, signature }), { valid: true })
    expectData(await check({ input: hello, context: other, signature }), { valid: false })
    expectData(await check({ input: base64('x'), context, signature }), { valid: false })
  })

  test('writes jws in its alphabet', async () => {
    const reply = await sign({ input: hello, context, marshaling_algorithm: 'jws' })
    const signature = reply.string('data.signature')
    expect(signature).toMatch(/^vault:v1:[\w-]+$/)
    expectData(await check({ input: hello, context, signature, marshaling_algorithm: 'jws' }), { valid: true })
  })

  test.each([{}, { context: '' }])('with %j for a context is refused', async (given) => {
    for (const reply of [
      await sign({ input: hello, ...given }),
      await check({ input: hello, ...given, signature: 'vault:v1:AAAA' }),
    ]) {
      expect(reply.status).toBe(400)
      expect((reply.body as { errors: string[] }).errors).toEqual([expect.stringMatching(missing)])
    }
  })

  test('with a context that is not base64 is refused', async () => {
    const text = 'failed to base64-decode context: illegal base64 data at input byte 0'
    expectRefused(await sign({ input: hello, context: '!' }), 400, text)
    expectRefused(await check({ input: hello, context: '!', signature: 'vault:v1:AAAA' }), 400, text)
  })

  test('does each item of a batch under its own context, and ignores the request’s', async () => {
    const batch_input = [{ input: hello, context }, { input: hello }, { input: hello, context: other, reference: 'r' }]
    const reply = await sign({ batch_input, context })
    const good = {
      signature: expect.any(String),
      key_version: 1,
      publickey: expect.any(String),
      public_key: expect.any(String),
    }
    expectData(reply, {
      batch_results: [
        { ...good, reference: '' },
        { error: expect.stringMatching(missing), key_version: 0, reference: '' },
        { ...good, reference: 'r' },
      ],
    })
    const [first, , third] = (reply.body as { data: { batch_results: { signature: string }[] } }).data.batch_results
    const checked = await check({
      batch_input: [
        { input: hello, context, signature: first?.signature },
        { input: hello, context: other, signature: third?.signature },
        { input: hello, context, signature: third?.signature },
      ],
    })
    expectData(checked, {
      batch_results: [
        { valid: true, reference: '' },
        { valid: true, reference: '' },
        { valid: false, reference: '' },
      ],
    })
  })

  test('continues after rotation, with a key of its own per version', async () => {
    const rotating = await node.key({ type: 'ed25519', derived: true })
    const post = (verb: string, body: Record<string, unknown>) => node.root.post(`transit/${verb}/${rotating}`, body)
    const first = await done(post('sign', { input: hello, context }))
    await done(node.root.post(`transit/keys/${rotating}/rotate`))
    const second = await done(post('sign', { input: hello, context }))
    expect(second.string('data.public_key')).not.toBe(first.string('data.public_key'))
    const signature = first.string('data.signature')
    expectData(await post('verify', { input: hello, context, signature }), { valid: true })
  })

  test('does not encrypt', async () => {
    const text = 'message encryption not supported for key type ed25519'
    expectRefused(await node.root.post(`transit/encrypt/${name}`, { plaintext: hello, context }), 400, text)
  })
})

describe('reading a derived ed25519 key', () => {
  test('shows no public key without a context', async () => {
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { derived: true, kdf: 'hkdf_sha256', keys: { 1: { name: 'ed25519', public_key: '' } } },
    })
  })

  test('shows that of the context which the query names', async () => {
    const signed = await sign({ input: hello, context })
    const reply = await node.root.get(`transit/keys/${name}?context=${encodeURIComponent(context)}`)
    expect(reply.body).toMatchObject({ data: { keys: { 1: { public_key: signed.string('data.public_key') } } } })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { keys: { 1: { public_key: '' } } },
    })
  })

  test('with a context that is not base64 is refused', async () => {
    const reply = await node.root.get(`transit/keys/${name}?context=!`)
    expectRefused(reply, 400, 'failed to base64-decode context: illegal base64 data at input byte 0')
  })

  test('of a key that is not derived ignores the context', async () => {
    const plain = await node.key({ type: 'ed25519' })
    const reply = await node.root.get(`transit/keys/${plain}?context=${encodeURIComponent(context)}`)
    expect(reply.body).toMatchObject({ data: { keys: { 1: { public_key: expect.stringMatching(/=$/) } } } })
  })
})
