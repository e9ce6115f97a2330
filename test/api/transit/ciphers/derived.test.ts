import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, enveloped, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const post = (verb: string, name: string, body: Record<string, unknown>) =>
  node.root.post(`transit/${verb}/${name}`, body)
const encrypt = (name: string, body: Record<string, unknown>) => post('encrypt', name, body)
const decrypt = (name: string, body: Record<string, unknown>) => post('decrypt', name, body)
const rewrap = (name: string, body: Record<string, unknown>) => post('rewrap', name, body)
const context = base64('tenant 1')
const other = base64('tenant 2')
const missing =
  "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key"
const mixed = 'context should be set either in all the request blocks or in none'

interface Result {
  readonly ciphertext: string
  readonly error?: string
}
const results = (reply: { body: unknown }) =>
  (reply.body as { data: { batch_results: readonly Result[] } }).data.batch_results

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('a derived key of type %s', (type) => {
  let name: string
  beforeAll(async () => {
    name = await node.key({ type, derived: true })
  })
  const failure = type.startsWith('chacha')
    ? 'chacha20poly1305: message authentication failed'
    : 'cipher: message authentication failed'

  test('decrypts under the context that encrypted, and under no other', async () => {
    const sealed = await encrypt(name, { plaintext: hello, context })
    expectData(sealed, { ciphertext: expect.stringMatching(/^vault:v1:/), key_version: 1 })
    const ciphertext = sealed.string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext, context }), { plaintext: hello })
    expectRefused(await decrypt(name, { ciphertext, context: other }), 400, failure)
  })

  test('never encrypts alike twice', async () => {
    const [first, second] = [
      await encrypt(name, { plaintext: hello, context }),
      await encrypt(name, { plaintext: hello, context }),
    ]
    expect(first.string('data.ciphertext')).not.toBe(second.string('data.ciphertext'))
  })

  test('authenticates associated data beside the context', async () => {
    const associated_data = base64('aad')
    const sealed = await encrypt(name, { plaintext: hello, context, associated_data })
    const ciphertext = sealed.string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext, context, associated_data }), { plaintext: hello })
    expectRefused(await decrypt(name, { ciphertext, context }), 400, failure)
  })

  test('takes the empty text', async () => {
    const ciphertext = (await encrypt(name, { plaintext: '', context })).string('data.ciphertext')
    expectData(await decrypt(name, { ciphertext, context }), { plaintext: '' })
  })

  test('shows its custody: the root wrapped, derived keys in memory when used', async () => {
    const { body } = await node.root.get(`transit/keys/${name}`)
    expect(body).toMatchObject({
      data: {
        derived: true,
        kdf: 'hkdf_sha256',
        custody: { 1: { derived_keys: 'in memory when used', prk: { residence: 'wrapped', exportable: false } } },
      },
    })
    expect((body as { data: object }).data).not.toHaveProperty('kdf_mode')
  })
})

describe('a request to a derived key', () => {
  let name: string
  let ciphertext: string
  beforeAll(async () => {
    name = await node.key({ derived: true })
    ciphertext = (await done(encrypt(name, { plaintext: hello, context }))).string('data.ciphertext')
  })

  test.each([{}, { context: '' }, { context: null }])('with %j for a context is refused', async (given) => {
    expectRefused(await encrypt(name, { plaintext: hello, ...given }), 400, missing)
    expectRefused(await decrypt(name, { ciphertext, ...given }), 400, missing)
    expectRefused(await rewrap(name, { ciphertext, ...given }), 400, missing)
    expectRefused(await post('datakey/plaintext', name, given), 400, missing)
  })

  test.each([
    ['context', '!'],
    ['nonce', '_'],
    ['associated_data', 'aGk'],
  ])('whose %s is not base64 is refused, naming the field', async (field, value) => {
    const text = `failed to base64-decode ${field}: illegal base64 data at input byte 0`
    expectRefused(await encrypt(name, { plaintext: hello, context, [field]: value }), 400, text)
    expectRefused(await decrypt(name, { ciphertext, context, [field]: value }), 400, text)
    expectRefused(await rewrap(name, { ciphertext, context, [field]: value }), 400, text)
    expectRefused(await post('datakey/wrapped', name, { context, [field]: value }), 400, text)
  })

  test.each([
    ['context', { a: 1 }],
    ['nonce', [1]],
    ['key_version', 'x'],
    ['key_version', 1.5],
    ['batch_input', 'x'],
    ['partial_failure_response_code', 'x'],
  ])('whose %s is %j is refused by the name of it', async (field, value) => {
    const reply = await encrypt(name, { plaintext: hello, context, [field]: value })
    expect(reply.status).toBe(400)
    expect(reply.text).toMatch(field === 'batch_input' ? /batch input/ : field)
  })

  test('ignores a nonce with a warning, once it is 12 bytes', async () => {
    const nonce = base64(Buffer.alloc(12))
    const sealed = await encrypt(name, { plaintext: hello, context, nonce })
    expect(sealed.body).toMatchObject({ warnings: ['the nonce was not used: this key makes its own'] })
    const opened = await decrypt(name, { ciphertext: sealed.string('data.ciphertext'), context, nonce })
    expect(opened.body).toMatchObject({ data: { plaintext: hello }, warnings: [expect.any(String)] })
    const text = 'base64-decoded nonce must be 12 bytes long but given 11 bytes'
    const short = base64(Buffer.alloc(11))
    expectRefused(await encrypt(name, { plaintext: hello, context, nonce: short }), 400, text)
    expectRefused(await decrypt(name, { ciphertext, context, nonce: short }), 400, text)
  })

  test.each([
    ['vault:v1:AAAA', 'invalid ciphertext length'],
    [`vault:v1:${base64(Buffer.alloc(20))}`, 'cipher: message authentication failed'],
    [`vault:v1:${base64(Buffer.alloc(28))}`, 'cipher: message authentication failed'],
    ['vault:v2:AAAA', 'invalid ciphertext: version is too new'],
    ['vault:v1:!', 'invalid ciphertext: could not decode base64'],
  ])('to decrypt %s is refused: %s', async (ciphertext, text) => {
    expectRefused(await decrypt(name, { ciphertext, context }), 400, text)
    expectRefused(await rewrap(name, { ciphertext, context }), 400, text)
  })
})

describe('rotation of a derived key', () => {
  test('keeps old ciphertexts readable and rewraps them without changing plaintext or context', async () => {
    const name = await node.key({ derived: true })
    const first = (await encrypt(name, { plaintext: hello, context })).string('data.ciphertext')
    await done(node.root.post(`transit/keys/${name}/rotate`))
    expectData(await decrypt(name, { ciphertext: first, context }), { plaintext: hello })
    const again = await rewrap(name, { ciphertext: first, context })
    expectData(again, { ciphertext: expect.stringMatching(/^vault:v2:/), key_version: 2 })
    expectData(await decrypt(name, { ciphertext: again.string('data.ciphertext'), context }), { plaintext: hello })
    expectRefused(
      await rewrap(name, { ciphertext: first, context: other }),
      400,
      'cipher: message authentication failed',
    )
    const pinned = await encrypt(name, { plaintext: hello, context, key_version: 1 })
    expectData(pinned, { ciphertext: expect.stringMatching(/^vault:v1:/), key_version: 1 })
  })

  test('and making it exportable leave derived keys unchanged', async () => {
    const name = await node.key({ derived: true, convergent_encryption: true })
    const before = (await encrypt(name, { plaintext: hello, context })).string('data.ciphertext')
    await done(node.root.post(`transit/keys/${name}/config`, { exportable: true }))
    expect((await encrypt(name, { plaintext: hello, context })).string('data.ciphertext')).toBe(before)
    expectData(await decrypt(name, { ciphertext: before, context }), { plaintext: hello })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { exportable: true, custody: { 1: { exportable: true, prk: { exportable: false } } } },
    })
  })
})

describe('trimming a derived key', () => {
  test('removes the old version with the keys derived from it, and leaves the rest', async () => {
    const name = await node.key({ derived: true })
    const config = (body: Record<string, unknown>) => done(node.root.post(`transit/keys/${name}/config`, body))
    const first = (await encrypt(name, { plaintext: hello, context })).string('data.ciphertext')
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const second = (await encrypt(name, { plaintext: hello, context })).string('data.ciphertext')
    await config({ min_decryption_version: 2, min_encryption_version: 2 })
    const tooOld = 'ciphertext or signature version is disallowed by policy (too old)'
    expectRefused(await decrypt(name, { ciphertext: first, context }), 400, tooOld)
    await done(node.root.post(`transit/keys/${name}/trim`, { min_available_version: 2 }))
    expectRefused(await rewrap(name, { ciphertext: first, context }), 400, tooOld)
    expectData(await decrypt(name, { ciphertext: second, context }), { plaintext: hello })
  })
})

describe('a batch to a derived key', () => {
  let name: string
  beforeAll(async () => {
    name = await node.key({ derived: true })
  })

  test('derives per item, and a bad item leaves its neighbours whole', async () => {
    const batch_input = [
      { plaintext: hello, context, reference: 'a' },
      { plaintext: '!', context, reference: 'b' },
      { plaintext: hello, context: other },
      { plaintext: hello, context: '!', reference: 'd' },
      { plaintext: hello, context, nonce: 'AAAA' },
      { plaintext: hello, context, key_version: 7 },
      { plaintext: hello, context, associated_data: base64('x') },
    ]
    const reply = await encrypt(name, { batch_input, partial_failure_response_code: 207 })
    expect(reply.status).toBe(207)
    const good = { ciphertext: expect.stringMatching(/^vault:v1:/), key_version: 1 }
    expect(reply.body).toEqual(
      enveloped({
        batch_results: [
          { ...good, reference: 'a' },
          { error: 'failed to base64-decode plaintext: illegal base64 data at input byte 0', reference: 'b' },
          { ...good, reference: '' },
          { error: 'failed to base64-decode context: illegal base64 data at input byte 0', reference: 'd' },
          { error: 'base64-decoded nonce must be 12 bytes long but given 3 bytes', reference: '' },
          { error: 'requested version for encryption is higher than the latest key version', reference: '' },
          { ...good, reference: '' },
        ],
      }),
    )
    const [first, , third, , , , last] = results(reply)
    const opened = await decrypt(name, {
      batch_input: [
        { ciphertext: first?.ciphertext, context },
        { ciphertext: third?.ciphertext, context: other },
        { ciphertext: last?.ciphertext, context, associated_data: base64('x') },
      ],
    })
    const plain = { plaintext: hello, reference: '' }
    expectData(opened, { batch_results: [plain, plain, plain] })
  })

  test('with and without contexts is refused whole', async () => {
    const contexts = [{ context }, {}]
    const sealing = contexts.map((given) => ({ plaintext: hello, ...given }))
    expectRefused(await encrypt(name, { batch_input: sealing }), 400, mixed)
    expectRefused(await encrypt(name, { batch_input: sealing.toReversed() }), 400, mixed)
    const opening = contexts.map((given) => ({ ciphertext: 'vault:v1:AAAA', ...given }))
    expectRefused(await decrypt(name, { batch_input: opening }), 400, mixed)
    expectRefused(await rewrap(name, { batch_input: opening }), 400, mixed)
    const plain = await node.key()
    expectRefused(await encrypt(plain, { batch_input: sealing }), 400, mixed)
  })

  test('ignores the context of the request itself', async () => {
    const reply = await encrypt(name, { context, batch_input: [{ plaintext: hello }] })
    expect(reply.status).toBe(400)
    expect(results(reply)).toEqual([{ error: missing, reference: '' }])
  })

  test('of thousands, each under its own context, comes back in order', async () => {
    const count = 3000
    const texts = Array.from({ length: count }, (_, index) => base64(`text ${index}`))
    const contexts = texts.map((_, index) => base64(`context ${index}`))
    const sealed = await encrypt(name, {
      batch_input: texts.map((plaintext, index) => ({ plaintext, context: contexts[index], reference: `${index}` })),
    })
    expect(sealed.status).toBe(200)
    const opened = await decrypt(name, {
      batch_input: results(sealed).map(({ ciphertext }, index) => ({ ciphertext, context: contexts[index] })),
    })
    expect(opened.status).toBe(200)
    const plaintexts = results(opened) as unknown as readonly { plaintext: string }[]
    expect(plaintexts.map(({ plaintext }) => plaintext)).toEqual(texts)
  })
})

describe('a derived key', () => {
  test.each(['ecdsa-p256', 'rsa-2048', 'hmac'])('of type %s is not made', async (type) => {
    const name = fresh('k')
    const text = `key derivation and convergent encryption not supported for keys of type ${type}`
    expectRefused(await node.root.post(`transit/keys/${name}`, { type, derived: true }), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('makes HMACs without a context', async () => {
    const name = await node.key({ derived: true })
    const hmac = (await done(post('hmac', name, { input: hello }))).string('data.hmac')
    expectData(await post('verify', name, { input: hello, hmac }), { valid: true })
  })

  test('that encrypts does not sign', async () => {
    const name = await node.key({ derived: true })
    const text = 'key type aes256-gcm96 does not support signing'
    expectRefused(await post('sign', name, { input: hello, context }), 400, text)
  })

  test('goes with everything it has when it is deleted', async () => {
    const name = await node.key({ derived: true })
    await done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    expect((await node.root.delete(`transit/keys/${name}`)).status).toBe(204)
    expectRefused(await encrypt(name, { plaintext: hello, context, key_version: 9 }), 400, expect.any(String))
  })
})
