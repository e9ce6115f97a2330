import { constants, type KeyObject, publicEncrypt, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { hashOf } from '../../../../src/crypto/hashes.ts'
import { mgf1, xor } from '../../../../src/crypto/mgf.ts'
import { base64, done, expectData, expectRefused, hello, useNode } from '../../node.ts'
import { bytesOf, publicKeyOf } from '../../signing.ts'

const node = useNode()
const sizes = { 'rsa-2048': 190, 'rsa-3072': 318, 'rsa-4096': 446 } as const
type Type = keyof typeof sizes
const names = new Map<string, string>()
let open: KeyObject
beforeAll(async () => {
  for (const type of Object.keys(sizes)) names.set(type, await node.key({ type }))
  open = await publicKeyOf(node.root, names.get('rsa-2048') ?? '')
}, 120_000)

const post = (verb: string, body: Record<string, unknown>, type: Type = 'rsa-2048') =>
  node.root.post(`transit/${verb}/${names.get(type)}`, body)
const types = Object.keys(sizes) as Type[]
const tooLong = 'failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size'
const wrong = 'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error'
const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }

describe('RSA-OAEP', () => {
  test.each(types)('%s gives back plaintexts of every length up to its own, and refuses one more', async (type) => {
    for (const length of [0, 1, sizes[type] - 1, sizes[type]]) {
      const plaintext = base64(randomBytes(length))
      const sealed = await done(post('encrypt', { plaintext }, type))
      expect(bytesOf(sealed.string('data.ciphertext'))).toHaveLength(Number(type.slice(4)) / 8)
      expectData(await post('decrypt', { ciphertext: sealed.string('data.ciphertext') }, type), { plaintext })
    }
    const long = base64(randomBytes(sizes[type] + 1))
    expectRefused(await post('encrypt', { plaintext: long }, type), 400, tooLong)
  })

  test('decrypts a message that OpenSSL encrypted with the public key', async () => {
    const ciphertext = `vault:v1:${base64(publicEncrypt({ key: open, ...oaep }, Buffer.from('hello')))}`
    expectData(await post('decrypt', { ciphertext }), { plaintext: hello })
  })

  test('never gives the same ciphertext twice', async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => post('encrypt', { plaintext: hello })))
    expect(new Set(made.map((reply) => reply.string('data.ciphertext'))).size).toBe(5)
  })

  test('ignores a context, as every key that is not derived', async () => {
    const sealed = await done(post('encrypt', { plaintext: hello, context: hello }))
    const ciphertext = sealed.string('data.ciphertext')
    expectData(await post('decrypt', { ciphertext, context: base64('other') }), { plaintext: hello })
  })

  test('cannot authenticate: associated data is refused with an explanation', async () => {
    const text = "'associated_data' provided for non-AEAD cipher suite rsa-2048"
    expectRefused(await post('encrypt', { plaintext: hello, associated_data: hello }), 400, text)
    const ciphertext = (await done(post('encrypt', { plaintext: hello }))).string('data.ciphertext')
    expectRefused(await post('decrypt', { ciphertext, associated_data: hello }), 400, text)
    expectRefused(await post('rewrap', { ciphertext, associated_data: hello }), 400, text)
    expectData(await post('decrypt', { ciphertext, associated_data: '' }), { plaintext: hello })
  })

  test('refuses PKCS#1 v1.5 encryption with an explanation', async () => {
    const text = 'padding_scheme "pkcs1v15" is not offered: RSA encryption uses oaep only'
    expectRefused(await post('encrypt', { plaintext: hello, padding_scheme: 'pkcs1v15' }), 400, text)
    const sealed = await done(post('encrypt', { plaintext: hello, padding_scheme: 'oaep' }))
    const ciphertext = sealed.string('data.ciphertext')
    expectRefused(await post('decrypt', { ciphertext, padding_scheme: 'pkcs1v15' }), 400, text)
    expectData(await post('decrypt', { ciphertext, padding_scheme: 'oaep' }), { plaintext: hello })
    for (const field of ['decrypt_padding_scheme', 'encrypt_padding_scheme']) {
      expectRefused(await post('rewrap', { ciphertext, [field]: 'pkcs1v15' }), 400, text)
    }
  })

  test('is rewrapped to the latest version, and the old one still decrypts', async () => {
    const name = await node.key({ type: 'rsa-2048' })
    const call = (verb: string, body: Record<string, unknown>) => node.root.post(`transit/${verb}/${name}`, body)
    const first = (await done(call('encrypt', { plaintext: hello }))).string('data.ciphertext')
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const second = await done(call('rewrap', { ciphertext: first }))
    expect(second.body).toMatchObject({ data: { key_version: 2, ciphertext: expect.stringMatching(/^vault:v2:/) } })
    for (const ciphertext of [first, second.string('data.ciphertext')]) {
      expectData(await call('decrypt', { ciphertext }), { plaintext: hello })
    }
    expectData(await call('encrypt', { plaintext: hello, key_version: 1 }), {
      ciphertext: expect.stringMatching(/^vault:v1:/),
      key_version: 1,
    })
    const swapped = first.replace('v1', 'v2')
    expectRefused(await call('decrypt', { ciphertext: swapped }), 400, wrong)
    await done(node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2 }))
    const old = 'ciphertext or signature version is disallowed by policy (too old)'
    expectRefused(await call('decrypt', { ciphertext: first }), 400, old)
  })

  test('in a batch: a bad item damages no neighbour', async () => {
    const batch = await post('encrypt', {
      batch_input: [
        { plaintext: hello, reference: 'a' },
        { plaintext: base64(randomBytes(191)) },
        { plaintext: base64('world'), associated_data: hello },
        { plaintext: base64('world') },
      ],
    })
    expect(batch.status).toBe(400)
    const sealed = (batch.body as { data: { batch_results: { ciphertext?: string; error?: string }[] } }).data
      .batch_results
    expect(sealed.map(({ error }) => error)).toEqual([
      undefined,
      tooLong,
      "'associated_data' provided for non-AEAD cipher suite rsa-2048",
      undefined,
    ])
    const items = [sealed[0]?.ciphertext, `vault:v1:${base64(randomBytes(256))}`, sealed[3]?.ciphertext]
    const opened = await post('decrypt', {
      batch_input: items.map((ciphertext) => ({ ciphertext })),
      partial_failure_response_code: 200,
    })
    expectData(opened, {
      batch_results: [
        { plaintext: hello, reference: '' },
        { plaintext: '', error: wrong, reference: '' },
        { plaintext: base64('world'), reference: '' },
      ],
    })
  })
})

describe('an RSA ciphertext does not reveal why it does not decrypt', () => {
  const sha256 = hashOf('sha2-256')

  /** Encrypts a block of one's own making, as an attacker can. */
  const raw = (block: Buffer): Buffer => publicEncrypt({ key: open, padding: constants.RSA_NO_PADDING }, block)

  /** A well encoded block but for what `change` does to its clear parts. */
  function encoded(change: (parts: { data: Buffer; block: Buffer }) => void): Buffer {
    const block = Buffer.alloc(256)
    const [seed, data] = [block.subarray(1, 33), block.subarray(33)]
    seed.set(randomBytes(32))
    data.set(Buffer.from('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'hex'))
    data[data.length - 6] = 1
    data.set(Buffer.from('hello'), data.length - 5)
    change({ data, block })
    xor(data, mgf1(seed, data.length, sha256))
    xor(seed, mgf1(data, 32, sha256))
    return block
  }

  test('as the attacker’s own encoder is right when it changes nothing', async () => {
    const ciphertext = `vault:v1:${base64(raw(encoded(() => {})))}`
    expectData(await post('decrypt', { ciphertext }), { plaintext: hello })
  })

  const attacks: readonly (readonly [string, () => Buffer])[] = [
    ['a first byte that is not 0 (Manger)', () => raw(encoded(({ block }) => block.fill(1, 0, 1)))],
    ['another label', () => raw(encoded(({ data }) => data.fill(0, 0, 32)))],
    ['no 01', () => raw(encoded(({ data }) => data.fill(0, 32)))],
    ['a wrong byte before the 01', () => raw(encoded(({ data }) => data.fill(9, 40, 41)))],
    ['a first byte and a label that are wrong', () => raw(Buffer.alloc(256, 1))],
    ['PKCS#1 v1.5', () => publicEncrypt({ key: open, padding: constants.RSA_PKCS1_PADDING }, Buffer.from('hello'))],
    ['OAEP with SHA-1', () => publicEncrypt({ key: open, ...oaep, oaepHash: 'sha1' }, Buffer.from('hello'))],
    [
      'OAEP with a label',
      () => publicEncrypt({ key: open, ...oaep, oaepLabel: Buffer.from('x') }, Buffer.from('hello')),
    ],
    ['random bytes', () => Buffer.concat([Buffer.alloc(1), randomBytes(255)])],
    ['zero', () => Buffer.alloc(256)],
    ['one', () => Buffer.concat([Buffer.alloc(255), Buffer.from([1])])],
    ['the modulus', () => Buffer.from(open.export({ format: 'jwk' }).n ?? '', 'base64url')],
    ['more than the modulus', () => Buffer.alloc(256, 0xff)],
    ['a byte too few', () => randomBytes(255)],
    ['a byte too many', () => randomBytes(257)],
    ['nothing', () => Buffer.alloc(0)],
  ]
  test.each(attacks)('%s', async (_, make) => {
    const ciphertext = `vault:v1:${base64(make())}`
    for (const verb of ['decrypt', 'rewrap']) expectRefused(await post(verb, { ciphertext }), 400, wrong)
    const batch = await post('decrypt', { batch_input: [{ ciphertext }, { ciphertext }] })
    expect(batch.status).toBe(400)
    expect(batch.body).toMatchObject({ data: { batch_results: Array(2).fill({ plaintext: '', error: wrong }) } })
  })

  test('and none of them is logged as a fault', () => {
    expect(node.server.output()).not.toMatch(/"level":(50|60|"error"|"fatal")/)
  })
})
