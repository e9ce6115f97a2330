import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, fresh, useSharedNode } from '../../node.ts'
import blobs from '../fixtures/vaultblobs.json' with { type: 'json' }

/** Backups in the reference's format that it did not write: each is refused with an explanation, and leaves nothing. */
const node = useSharedNode()
type Name = keyof typeof blobs

async function expectNothing(backup: string, text: RegExp): Promise<void> {
  for (const force of [false, true]) {
    const name = fresh('f')
    const reply = await node.root.post('transit/restore', { backup, name, force })
    expect(reply.status, reply.text).toBe(400)
    expect(reply.text).toMatch(/^\{"errors":\["[^"]+"\]\}/)
    expect(reply.text).toMatch(text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  }
}

const unreadable = /the backup cannot be read/
const impossible = /invalid backup: /
const broken = /error parsing (public|asymmetric) key/
const zeros = base64(Buffer.alloc(32))
const small = base64(Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex'))

/** Digits of an RSA modulus of 2048 bits, as it is and doubled, which is one bit longer. */
const modulus = (() => {
  const { n = '' } = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  return BigInt(`0x${Buffer.from(n, 'base64url').toString('hex')}`)
})()

describe.each<[string, Name, RegExp, string, RegExp]>([
  ...[-1, 12, 99, 2 ** 31, 2 ** 53].map((type): [string, Name, RegExp, string, RegExp] => [
    `a type of number ${type}`,
    'aes256',
    /"type":0/,
    `"type":${type}`,
    type < 2 ** 53 ? /unknown key type: number|cannot be read/ : unreadable,
  ]),
  ['a type that is a fraction', 'aes256', /"type":0/, '"type":0.5', /unknown key type: number 0.5|cannot be read/],
  ['a type that is text', 'aes256', /"type":0/, '"type":"aes256-gcm96"', unreadable],
  ['type 10 with neither key nor size', 'aes256', /"type":0/, '"type":10', /xchacha20-poly1305 cannot be restored/],
  ['a latest version of 2^31', 'aes256', /"latest_version":3/, '"latest_version":2147483648', impossible],
  ['a latest version of 2^53', 'aes256', /"latest_version":3/, '"latest_version":9007199254740993', unreadable],
  ['a latest version below 0', 'aes256', /"latest_version":3/, '"latest_version":-3', unreadable],
  ['a latest version that is a fraction', 'aes256', /"latest_version":3/, '"latest_version":2.5', unreadable],
  ['a latest version that is a list', 'aes256', /"latest_version":3/, '"latest_version":[3]', unreadable],
  [
    'a latest version spelt as we read long ones',
    'aes256',
    /"latest_version":3/,
    '"latest_version":{"digits":"3"}',
    unreadable,
  ],
  ['a negative available floor', 'aes256', /"min_available_version":0/, '"min_available_version":-1', unreadable],
  [
    'an available floor above the archive',
    'aes256',
    /"min_available_version":0/,
    '"min_available_version":2',
    impossible,
  ],
  [
    'an encryption floor below that of decryption',
    'aes256',
    /"min_encryption_version":0/,
    '"min_encryption_version":1',
    impossible,
  ],
  [
    'an archive that begins elsewhere',
    'aes256',
    /"archived_keys":\{"keys":\[\{/,
    '"archived_keys":{"keys":[null,null,{',
    impossible,
  ],
  ['an archive that is none', 'aes256', /"archived_keys":\{"keys":\[/, '"archived_keys":{"kees":[', /lacks version 1/],
  ['an archive that is text', 'aes256', /"archived_keys":\{.*\}/, '"archived_keys":"all"}', unreadable],
  ['a version that is no object', 'aes256', /"3":\{/, '"3":7,"4":{', unreadable],
  [
    'a rotation period of 5,000 digits',
    'aes256',
    /"auto_rotate_period":\d+/,
    `"auto_rotate_period":${'9'.repeat(4999)}`,
    /at most 292 years/,
  ],
  [
    'a rotation period of 6,000 digits',
    'aes256',
    /"auto_rotate_period":\d+/,
    `"auto_rotate_period":${'9'.repeat(6000)}`,
    unreadable,
  ],
  [
    'a rotation period below 0',
    'aes256',
    /"auto_rotate_period":\d+/,
    '"auto_rotate_period":-3600000000000',
    unreadable,
  ],
  ['a time that is none', 'aes256', /"time":"2024[^"]*"/g, '"time":"noon"', unreadable],
  ['a time far beyond', 'aes256', /"time":"2024[^"]*"/g, '"time":"+200000-01-01T00:00:00Z"', impossible],
  ['a convergent version of 7', 'convergent-3', /"convergent_version":\d+/g, '"convergent_version":7', impossible],
  [
    'an HMAC secret of 600 bytes',
    'aes256',
    /"hmac_key":"[^"]+"/g,
    `"hmac_key":"${base64(Buffer.alloc(600))}"`,
    /invalid key size/,
  ],
  ['a key of an unknown KDF', 'derived-hkdf', /"kdf":1/, '"kdf":"1"', unreadable],
  ['an EC key of zeros', 'p256-public', /"ec_x":\d+,"ec_y":\d+/, '"ec_x":0,"ec_y":0', broken],
  ['coordinates longer than the curve’s', 'p256-public', /"ec_x":\d+/, `"ec_x":${'9'.repeat(200)}`, broken],
  ['a negative coordinate', 'p256-public', /"ec_x":\d+/, '"ec_x":-5', unreadable],
  ['a scalar of 5,000 digits', 'p256', /"ec_d":\d+/, `"ec_d":${'9'.repeat(5000)}`, broken],
  ['an Ed25519 point of zeros', 'ed25519-public', /"public_key":"[^"]+"/g, `"public_key":"${zeros}"`, broken],
  ['an Ed25519 point of small order', 'ed25519-public', /"public_key":"[^"]+"/g, `"public_key":"${small}"`, broken],
  [
    'an Ed25519 point of 31 bytes',
    'ed25519-public',
    /"public_key":"[^"]+"/g,
    `"public_key":"${small.slice(0, 40)}"`,
    broken,
  ],
  [
    'an Ed25519 key whose halves are two keys’',
    'ed25519',
    /"key":"[^"]+"/g,
    `"key":"${base64(Buffer.alloc(64, 1))}"`,
    broken,
  ],
  ['an Ed25519 key of 33 bytes', 'ed25519', /"key":"[^"]+"/g, `"key":"${base64(Buffer.alloc(33, 1))}"`, broken],
  ['an RSA exponent of 1', 'rsa-public', /"E":65537/, '"E":1', broken],
  ['an even RSA exponent', 'rsa-public', /"E":65537/, '"E":65536', broken],
  ['an RSA exponent of 2^40 + 1', 'rsa-public', /"E":65537/, `"E":${2 ** 40 + 1}`, broken],
  ['an even RSA modulus', 'rsa-public', /"N":\d+/, `"N":${modulus - 1n}`, broken],
  ['an RSA modulus of another length', 'rsa-public', /"N":\d+/, `"N":${modulus * 4n + 1n}`, /invalid key size/],
  ['an RSA modulus of 0', 'rsa-public', /"N":\d+/, '"N":0', /error parsing|invalid key size/],
  ['no RSA modulus', 'rsa-public', /"N":\d+/, '"N":null', broken],
  ['RSA primes that are equal', 'rsa2048', /"Primes":\[(\d+),\d+\]/, '"Primes":[$1,$1]', broken],
  ['RSA primes that are even', 'rsa2048', /"Primes":\[\d+,\d+\]/, '"Primes":[4,6]', broken],
  ['three RSA primes', 'rsa2048', /"Primes":\[/, '"Primes":[3,', /more than two primes/],
  ['RSA primes that are text', 'rsa2048', /"Primes":\[(\d+),(\d+)\]/, '"Primes":["$1","$2"]', broken],
  ['an RSA private exponent of 0', 'rsa2048', /"D":\d+/, '"D":0', broken],
  [
    'a certificate chain that is none',
    'p256',
    /"certificate_chain":null/g,
    '"certificate_chain":["AAAA"]',
    /certificate 1 is malformed/,
  ],
  ['a certificate chain of numbers', 'p256', /"certificate_chain":null/g, '"certificate_chain":[1]', unreadable],
  [
    'a certificate chain of a secret key',
    'aes256',
    /"certificate_chain":null/g,
    '"certificate_chain":["AAAA"]',
    /a secret key has no certificate chain/,
  ],
])('%s', (_, name, from, to, text) => {
  test('is refused', async () => {
    const before = Buffer.from(blobs[name], 'base64').toString()
    const forged = before.replace(from, to)
    expect(forged).not.toBe(before)
    await expectNothing(base64(forged), text)
  })
})

test('more versions than can be are refused by their number, before one is looked at', async () => {
  const entry = '{"key":"","time":"2024-05-06T07:08:09Z"}'
  const of = (count: number) => {
    const keys = `[${Array(count).fill(entry).join(',')}]`
    return base64(
      `{"policy":{"name":"a","type":0,"latest_version":${count - 1},"keys":{}},"archived_keys":{"keys":${keys}}}`,
    )
  }
  await expectNothing(of(5002), /more than 5000 versions/)
  await expectNothing(of(10_000), /more than 5000 versions/)
  await expectNothing(of(100_000), /a list of more than 10000 elements/)
})

test('the name is the caller’s, or that of the backup, and never one that a key cannot have', async () => {
  const of = (name: string) =>
    base64(JSON.stringify({ policy: { name, type: 0, latest_version: 1, keys: { 1: { key: zeros } } } }))
  for (const name of ['', 'a/b', '../a', '-', 'a b', 'ä', 'a\u0000', `${'a'.repeat(513)}`]) {
    const reply = await node.root.post('transit/restore', { backup: of(name) })
    expect(reply.status, name).toBe(400)
    expect(reply.text).toMatch(/key names cannot be paths|invalid key name|at most 512 characters/)
    expect((await node.root.post('transit/restore', { backup: of('a/b'), name: fresh('v') })).status).toBe(204)
  }
  const long = `k${'a'.repeat(510)}k`
  expect((await node.root.post('transit/restore', { backup: of(long) })).status).toBe(204)
  expect((await node.root.get(`transit/keys/${long}`)).status).toBe(200)
})
