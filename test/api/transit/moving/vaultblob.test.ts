import {
  type CipherGCMTypes,
  createCipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type JsonWebKey,
  sign,
  verify,
} from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { bytesOf, publicKeyOf } from '../../signing.ts'
import blobs from '../fixtures/vaultblobs.json' with { type: 'json' }

/**
 * Backups in the reference's format: Go's encoding/json of the structs of Vault's and OpenBao's keysutil, with
 * throw-away keys made by Go's crypto packages.
 */
type Name = keyof typeof blobs
const node = useSharedNode()
const message = Buffer.from('hello')
const context = base64('one user')

interface Entry {
  readonly key: string
  readonly hmac_key: string
  readonly [number: string]: unknown
}
/** The entry of a version as the blob holds it; big integers as their digits. */
function entryOf(name: Name, version = 1): Entry {
  const text = Buffer.from(blobs[name], 'base64').toString()
  const quoted = text.replace(/([:[,])(\d{16,})/g, '$1"$2"')
  const { archived_keys, policy } = JSON.parse(quoted) as {
    archived_keys: { keys: Entry[] }
    policy: { min_available_version: number }
  }
  const entry = archived_keys.keys[version - policy.min_available_version]
  if (entry === undefined) throw new Error(`no version ${version}`)
  return entry
}

async function restored(name: Name): Promise<string> {
  const key = fresh('v')
  const reply = await node.root.post(`transit/restore/${key}`, { backup: blobs[name] })
  expect(reply.text).toBe('')
  expect(reply.status).toBe(204)
  return key
}

function sealed(cipher: string, key: Uint8Array, version = 1): string {
  const iv = Buffer.alloc(12, 9)
  const encryption = createCipheriv(cipher as CipherGCMTypes, key, iv, { authTagLength: 16 })
  const parts = [iv, encryption.update(message), encryption.final(), encryption.getAuthTag()]
  return `vault:v${version}:${base64(Buffer.concat(parts))}`
}

const opens = async (key: string, ciphertext: string, more: Record<string, unknown> = {}) =>
  expect((await node.root.post(`transit/decrypt/${key}`, { ciphertext, ...more })).body).toMatchObject({
    data: { plaintext: hello },
  })

describe('a backup of Vault or OpenBao is restored:', () => {
  test.each([
    ['aes128', 'aes-128-gcm'],
    ['chacha', 'chacha20-poly1305'],
    ['aes256', 'aes-256-gcm'],
  ] as const)('%s', async (name, cipher) => {
    const key = await restored(name)
    const latest = name === 'aes256' ? 3 : 1
    await opens(key, sealed(cipher, Buffer.from(entryOf(name, latest).key, 'base64'), latest))
    const hmac = createHmac('sha256', Buffer.from(entryOf(name, latest).hmac_key, 'base64')).update(message)
    const made = await node.root.post(`transit/hmac/${key}`, { input: hello })
    expect(made.string('data.hmac')).toBe(`vault:v${latest}:${hmac.digest('base64')}`)
  })

  test('settings, archived versions and periods beyond 2^53 nanoseconds', async () => {
    const key = await restored('aes256')
    expect((await node.root.get(`transit/keys/${key}`)).body).toMatchObject({
      data: {
        ...{ type: 'aes256-gcm96', latest_version: 3, min_decryption_version: 2, auto_rotate_period: 8760 * 3600 },
        ...{ exportable: true, allow_plaintext_backup: true, deletion_allowed: true, imported_key: false },
        keys: { 2: Math.floor(Date.parse('2024-05-06T07:08:09Z') / 1000) },
        custody: { 2: { origin: 'restored' } },
      },
    })
    const old = sealed('aes-256-gcm', Buffer.from(entryOf('aes256', 1).key, 'base64'), 1)
    expect((await node.root.post(`transit/decrypt/${key}`, { ciphertext: old })).status).toBe(400)
    await done(node.root.post(`transit/keys/${key}/config`, { min_decryption_version: 1 }))
    await opens(key, old)
  })

  test('a trimmed key', async () => {
    const key = await restored('trimmed')
    expect((await node.root.get(`transit/keys/${key}`)).body).toMatchObject({ data: { min_available_version: 2 } })
    await opens(key, sealed('aes-256-gcm', Buffer.from(entryOf('trimmed', 3).key, 'base64'), 3))
  })

  test.each(['p256', 'p384', 'p521', 'rsa2048', 'rsa3072'] as const)('%s', async (name) => {
    const key = await restored(name)
    const reply = await done(node.root.post(`transit/sign/${key}`, { input: hello, signature_algorithm: 'pkcs1v15' }))
    const publicKey = await publicKeyOf(node.root, key)
    expect(verify('sha256', message, publicKey, bytesOf(reply.string('data.signature')))).toBe(true)
    const jwk = publicKey.export({ format: 'jwk' })
    const number = (text = '') => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`).toString()
    const entry = entryOf(name)
    if (jwk.kty === 'EC') expect(number(jwk.x)).toBe(entry.ec_x)
    else expect(number(jwk.n)).toBe((entry.rsa_key as { N: string }).N)
  })

  test('ed25519', async () => {
    const key = await restored('ed25519')
    const both = Buffer.from(entryOf('ed25519', 2).key, 'base64')
    const reply = await done(node.root.post(`transit/sign/${key}`, { input: hello }))
    expect(bytesOf(reply.string('data.signature'))).toEqual(sign(null, message, edKey(both)))
  })

  test.each(['hmac-openbao', 'hmac-vault'] as const)('%s, whose type has another number', async (name) => {
    const key = await restored(name)
    const secret = Buffer.from(entryOf(name).key, 'base64')
    const reply = await done(node.root.post(`transit/hmac/${key}`, { input: hello }))
    expect(bytesOf(reply.string('data.hmac'))).toEqual(createHmac('sha256', secret).update(message).digest())
    expect((await node.root.get(`transit/keys/${key}`)).body).toMatchObject({
      data: { type: 'hmac', key_size: secret.length, imported_key: name === 'hmac-vault' },
    })
  })

  test.each(['p256-public', 'rsa-public', 'ed25519-public'] as const)('%s', async (name) => {
    const key = await restored(name)
    expect((await node.root.get(`transit/keys/${key}`)).body).toMatchObject({
      data: { custody: { 1: { residence: 'public' } } },
    })
    expectRefused(
      await node.root.post(`transit/sign/${key}`, { input: hello }),
      400,
      'requested version for signing does not contain a private part',
    )
  })
})

describe('derived keys of Vault decrypt and sign as they did there:', () => {
  const info = Buffer.from('one user')
  const hkdf = (root: Uint8Array) => Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), info, 32))
  /** SP 800-108 counter mode, as the reference's kdf 0. */
  const counter = (root: Uint8Array) =>
    createHmac('sha256', root)
      .update(Buffer.alloc(4))
      .update(info)
      .update(Buffer.from([0, 0, 1, 0]))
      .digest()

  test.each([
    ['derived-hkdf', hkdf, 'hkdf_sha256'],
    ['derived-counter', counter, 'hmac-sha256-counter'],
    ['convergent-2', hkdf, 'hkdf_sha256'],
    ['convergent-2-counter', counter, 'hmac-sha256-counter'],
    ['convergent-3', hkdf, 'hkdf_sha256'],
    ['convergent-mixed', hkdf, 'hkdf_sha256'],
  ] as const)('%s', async (name, kdf, shown) => {
    const key = await restored(name)
    const root = Buffer.from(entryOf(name).key, 'base64')
    await opens(key, sealed('aes-256-gcm', kdf(root)), { context })
    expect((await node.root.get(`transit/keys/${key}`)).body).toMatchObject({ data: { derived: true, kdf: shown } })
  })

  test.each(['convergent-1', 'convergent-2', 'convergent-2-counter', 'convergent-3', 'convergent-mixed'] as const)(
    '%s gives equal ciphertexts for equal plaintexts',
    async (name) => {
      const key = await restored(name)
      const nonce = name === 'convergent-1' ? { nonce: base64(Buffer.alloc(12, 5)) } : {}
      const encrypt = async () =>
        (await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello, context, ...nonce }))).string(
          'data.ciphertext',
        )
      const first = await encrypt()
      expect(await encrypt()).toBe(first)
      await opens(key, first, { context, ...nonce })
    },
  )

  test('derived-ed25519', async () => {
    const key = await restored('derived-ed25519')
    const seed = hkdf(Buffer.from(entryOf('derived-ed25519').key, 'base64'))
    const reply = await done(node.root.post(`transit/sign/${key}`, { input: hello, context }))
    expect(bytesOf(reply.string('data.signature'))).toEqual(sign(null, message, edKey(seed)))
  })
})

describe('a backup that cannot be restored is refused with a reason:', () => {
  const refused = async (backup: string, text: string | RegExp) => {
    const name = fresh('v')
    const reply = await node.root.post(`transit/restore/${name}`, { backup })
    expect(reply.status).toBe(400)
    if (typeof text === 'string') expectRefused(reply, 400, text)
    else expect(reply.text).toMatch(text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  }
  /** The blob with some of its text replaced. */
  const edited = (name: Name, from: string | RegExp, to: string): string => {
    const text = Buffer.from(blobs[name], 'base64').toString()
    expect(text).toMatch(from)
    return base64(text.replace(from, to))
  }

  test('types that there are not here', async () => {
    await refused(blobs.xchacha, 'keys of type xchacha20-poly1305 cannot be restored')
    await refused(
      blobs.managed,
      'the backup contains a managed key, which stays in its HSM: configure that key here and refer to it',
    )
    await refused(edited('aes256', '"type":0', '"type":12'), 'the backup has an unknown key type: number 12')
  })

  test.each([
    ['an RSA prime', 'rsa2048', /"Primes":\[\d/, '"Primes":[7'],
    ['an RSA exponent of 1', 'rsa2048', /"E":65537/, '"E":1'],
    ['an RSA private exponent', 'rsa2048', /"D":\d/, '"D":3'],
    ['a point that is not on the curve', 'p256-public', /"ec_y":\d/, '"ec_y":1'],
    ['a point that is not the key’s', 'p256', /"ec_x":\d/, '"ec_x":1'],
    ['a scalar of 0', 'p256', /"ec_d":\d+/, '"ec_d":0'],
    ['a scalar beyond the order', 'p256', /"ec_d":\d+/, `"ec_d":${2n ** 256n - 1n}`],
    ['an AES key that is too short', 'aes128', /"key":"[^"]+"/g, '"key":"AAAA"'],
    ['a version that is missing', 'aes256', /"latest_version":3/, '"latest_version":4'],
    ['a floor above the latest version', 'aes256', /"min_decryption_version":2/, '"min_decryption_version":7'],
    ['a rotation period under an hour', 'aes256', /"auto_rotate_period":\d+/, '"auto_rotate_period":60000000000'],
    [
      'a convergent key must be derived and of an AEAD type',
      'aes256',
      /"convergent_encryption":false/,
      '"convergent_encryption":true',
    ],
    ['text where a number belongs', 'p256', /"ec_d":(\d+)/, '"ec_d":"$1"'],
  ] as const)('%s', async (_, name, from, to) => {
    await refused(
      edited(name, from, to),
      /^\{"errors":\["(error parsing|invalid key size|invalid backup|the backup|auto rotate period)[^"]*"\]\}/,
    )
  })
})

/** A private key out of seed ‖ public key, or the seed alone. */
const edKey = (both: Buffer) => {
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  return createPrivateKey({ key: Buffer.concat([prefix, both.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
}

test('the fixture has the described contents', () => {
  const both = Buffer.from(entryOf('ed25519').key, 'base64')
  const jwk: JsonWebKey = createPublicKey(edKey(both)).export({ format: 'jwk' })
  expect(Buffer.from(jwk.x ?? '', 'base64url')).toEqual(both.subarray(32))
})
