import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { base64, expectRefused, fresh, useSharedNode } from '../../node.ts'
import { envelopeOf, wrappingKeyOf } from '../envelope.ts'

/** Imports of bytes that are not a key: each is refused, whatever the bytes, and leaves nothing. */
const node = useSharedNode()
let pem = ''
beforeAll(async () => {
  pem = await wrappingKeyOf(node.root)
}, 60_000)

const types = [
  'aes128-gcm96',
  'aes256-gcm96',
  'chacha20-poly1305',
  'ecdsa-p256',
  'ecdsa-p521',
  'ed25519',
  'rsa-2048',
  'rsa-4096',
]

async function expectNothing(body: Record<string, unknown>): Promise<void> {
  const name = fresh('f')
  const reply = await node.root.post(`transit/keys/${name}/import`, body)
  expect(reply.status, `${body.type} ${reply.text}`).toBe(400)
  expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
}

test('bytes of any length under the wrapping key are a key of a type, or refused', async () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 }).filter(({ length }) => length !== 16 && length !== 32)
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...types), bytes, async (type, key) => {
      await expectNothing({ type, ciphertext: envelopeOf(pem, key) })
    }),
    { numRuns: 60, endOnFailure: true },
  )
}, 60_000)

test('ciphertexts of any length are refused', async () => {
  const head = Buffer.from(envelopeOf(pem, randomBytes(32)), 'base64').subarray(0, 512)
  const tails = fc.uint8Array({ minLength: 1, maxLength: 120 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...types, 'hmac'), tails, fc.boolean(), async (type, tail, sound) => {
      const ciphertext = base64(Buffer.concat([sound ? head : randomBytes(512), tail]))
      await expectNothing({ type, ciphertext })
    }),
    { numRuns: 60, endOnFailure: true },
  )
}, 60_000)

test('a private key of which any byte is changed is another key, or refused', async () => {
  const keys = {
    'ecdsa-p256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    ed25519: generateKeyPairSync('ed25519').privateKey,
    'rsa-2048': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  }
  const of = (type: keyof typeof keys) => keys[type].export({ type: 'pkcs8', format: 'der' })
  const places = fc.tuple(
    fc.constantFrom('ecdsa-p256', 'ed25519', 'rsa-2048'),
    fc.nat(),
    fc.integer({ min: 1, max: 255 }),
  )
  // The last byte of the algorithm's identifier: id-RSASSA-PSS, which is taken for the same key.
  const isPss = (type: string, at: number, byte: number) => type === 'rsa-2048' && at === 19 && byte === 10
  await fc.assert(
    fc.asyncProperty(places, async ([type, place, change]) => {
      const key = of(type)
      const at = place % key.length
      key.writeUInt8(key.readUInt8(at) ^ change, at)
      fc.pre(!isPss(type, at, key.readUInt8(at)))
      const name = fresh('f')
      const reply = await node.root.post(`transit/keys/${name}/import`, { type, ciphertext: envelopeOf(pem, key) })
      expect([204, 400], reply.text).toContain(reply.status)
      // No number of an RSA key can be changed; other keys that were accepted are whole, and work.
      if (type === 'rsa-2048') expect(reply.status).toBe(400)
      const signed = await node.root.post(`transit/sign/${name}`, { input: '' })
      expect(signed.status).toBe(reply.status === 204 ? 200 : 400)
    }),
    { numRuns: 80, endOnFailure: true, examples: [[['rsa-2048', 19, 12]]] },
  )
}, 60_000)

test('a ciphertext longer than any key’s is refused by the limit, before it is worked on', async () => {
  const text = 'provided ciphertext is longer than 16384 bytes'
  for (const length of [16_385, 20 << 20]) {
    const ciphertext = base64(Buffer.alloc(length))
    expectRefused(await node.root.post(`transit/keys/${fresh('f')}/import`, { ciphertext }), 400, text)
  }
})

const spkiPem = (der: Buffer) => `-----BEGIN PUBLIC KEY-----\n${base64(der)}\n-----END PUBLIC KEY-----\n`
const rsa = (change: (jwk: { n: Buffer; e: Buffer }) => void) => {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  const numbers = { n: Buffer.from(jwk.n ?? '', 'base64url'), e: Buffer.from(jwk.e ?? '', 'base64url') }
  change(numbers)
  const { n, e } = numbers
  const key = { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') }
  return createPublicKey({ format: 'jwk', key }).export({ type: 'spki', format: 'pem' })
}
const ed = (hex: string) =>
  spkiPem(Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(hex, 'hex')]))

test.each<[string, string, string | Buffer]>([
  ['an even modulus', 'rsa-2048', rsa(({ n }) => void n.writeUInt8(n.readUInt8(255) & 0xfe, 255))],
  ['an exponent of 1', 'rsa-2048', rsa((numbers) => void Object.assign(numbers, { e: Buffer.of(1) }))],
  ['an even exponent', 'rsa-2048', rsa((numbers) => void Object.assign(numbers, { e: Buffer.of(4) }))],
  [
    'the point at infinity',
    'ecdsa-p256',
    spkiPem(Buffer.from('3019301306072a8648ce3d020106082a8648ce3d03010703020000', 'hex')),
  ],
  ['a point of order 1', 'ed25519', ed(`01${'00'.repeat(31)}`)],
  ['a point of order 8', 'ed25519', ed('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a')],
  ['a point that is not on the curve', 'ed25519', ed(`02${'00'.repeat(31)}`)],
])('%s is not a public key of type %s', async (_, type, public_key) => {
  await expectNothing({ type, public_key: public_key.toString() })
})
