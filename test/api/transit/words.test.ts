import { beforeAll, describe, expect, test } from 'vitest'
import { done, hello, useSharedNode } from '../node.ts'

/** The reference's error texts, which clients match on. Each row is one request. */

const node = useSharedNode()
const keys: Readonly<Record<string, object>> = {
  aes: { exportable: true },
  closed: {},
  derived: { derived: true },
  convergent: { derived: true, convergent_encryption: true },
  p256: { type: 'ecdsa-p256' },
  ed: { type: 'ed25519' },
  mac: { type: 'hmac', key_size: 32 },
  rsa: { type: 'rsa-2048' },
  old: {},
}
const seen: Record<string, string> = {}

beforeAll(async () => {
  const { root } = node
  for (const [name, settings] of Object.entries(keys)) await done(root.post(`transit/keys/${name}`, settings))
  const answer = async (path: string, body: object, field: string) =>
    (await done(root.post(`transit/${path}`, body))).string(`data.${field}`)
  seen.cipher = await answer('encrypt/aes', { plaintext: hello }, 'ciphertext')
  seen.signature = await answer('sign/p256', { input: hello }, 'signature')
  seen.hmac = await answer('hmac/aes', { input: hello }, 'hmac')
  seen.oldest = await answer('encrypt/old', { plaintext: hello }, 'ciphertext')
  for (let version = 2; version <= 3; version++) await done(root.post('transit/keys/old/rotate'))
  await done(root.post('transit/keys/old/config', { min_decryption_version: 2, min_encryption_version: 3 }))
}, 60_000)

type Row = readonly [path: string, body: Readonly<Record<string, unknown>>, text: string]
/** `<name>` stands for the answer to an earlier request. */
const filled = (body: Row[1]) =>
  JSON.parse(JSON.stringify(body).replace(/<(\w+)>/g, (_, name: string) => seen[name] ?? name)) as object

const plaintext = hello
const input = hello
const rows: Readonly<Record<string, readonly Row[]>> = {
  'a missing key': [['keys/none/soft-delete-restore', {}, 'none']],
  'keys/:name': [
    ['keys/x', { type: 'zzz' }, 'unknown key type zzz'],
    ['keys/x', { key_size: 32 }, 'key_size is not valid for algorithm aes256-gcm96'],
    ['keys/x', { convergent_encryption: true }, 'convergent encryption requires derivation to be enabled'],
    ['keys/x', { auto_rotate_period: 5 }, 'auto rotate period must be 0 to disable or at least an hour'],
    [
      'keys/x',
      { type: 'ecdsa-p256', derived: true },
      'key derivation and convergent encryption not supported for keys of type ecdsa-p256',
    ],
    [
      'keys/x',
      { type: 'ed25519', derived: true, convergent_encryption: true },
      'convergent encryption not supported for keys of type ed25519',
    ],
  ],
  'keys/:name/config': [
    ['keys/none/config', {}, 'no existing key named none could be found'],
    ['keys/old/config', { min_decryption_version: -1 }, 'min decryption version cannot be negative'],
    ['keys/old/config', { min_encryption_version: -1 }, 'min encryption version cannot be negative'],
    [
      'keys/old/config',
      { min_decryption_version: 9 },
      'cannot set min decryption version of 9, latest key version is 3',
    ],
    [
      'keys/old/config',
      { min_encryption_version: 9 },
      'cannot set min encryption version of 9, latest key version is 3',
    ],
    [
      'keys/old/config',
      { min_encryption_version: 1 },
      'cannot set min encryption/decryption values; min encryption version of 1 must be greater than or equal to min decryption version of 2',
    ],
    ['keys/old/config', { auto_rotate_period: 5 }, 'auto rotate period must be 0 to disable or at least an hour'],
  ],
  'keys/:name/rotate': [['keys/none/rotate', {}, 'key not found']],
  'keys/:name/trim': [
    ['keys/none/trim', { min_available_version: 1 }, 'invalid key name'],
    ['keys/old/trim', {}, 'missing min_available_version'],
    [
      'keys/aes/trim',
      { min_available_version: 1 },
      'minimum available version cannot be set when minimum encryption version is not set',
    ],
    [
      'keys/old/trim',
      { min_available_version: 4 },
      'minimum available version cannot be greater than minmum encryption version',
    ],
    [
      'keys/old/trim',
      { min_available_version: 3 },
      'minimum available version cannot be greater than minimum decryption version',
    ],
    ['keys/old/trim', { min_available_version: -1 }, 'minimum available version cannot be decremented'],
    ['keys/old/trim', { min_available_version: 0 }, 'minimum available version should be positive'],
  ],
  'keys/:name/import': [
    ['keys/i/import', { type: 'zzz', ciphertext: 'AA==' }, 'unknown key type: zzz'],
    ['keys/i/import', { ciphertext: 'AA==', hash_function: 'MD5' }, 'unknown hash function: MD5'],
    ['keys/i/import', { ciphertext: 'AA==' }, 'provided ciphertext is too short'],
    [
      'keys/aes/import',
      { ciphertext: 'AA==' },
      'the import path cannot be used with an existing key; use import-version to rotate an existing imported key',
    ],
    [
      'keys/i/import_version',
      { ciphertext: 'AA==' },
      'no key found with name i; to import a new key, use the import/ endpoint',
    ],
    [
      'keys/aes/import_version',
      { ciphertext: 'AA==' },
      'the import_version endpoint can only be used with an imported key',
    ],
    [
      'keys/i/import',
      { ciphertext: 'AA==', auto_rotate_period: '1h' },
      'allow_rotation must be set to true if auto-rotation is enabled',
    ],
  ],
  restore: [
    ['restore', {}, "'backup' must be supplied"],
    ['restore/a/b', { backup: 'x' }, 'key names cannot be paths'],
  ],
  'encrypt/:name': [
    ['encrypt/aes', {}, 'missing plaintext to encrypt'],
    ['encrypt/p256', { plaintext }, 'message encryption not supported for key type ecdsa-p256'],
    ['encrypt/derived', { plaintext }, "missing 'context' for key derivation"],
    ['encrypt/derived', { plaintext, context: '%' }, 'failed to base64-decode context'],
    ['encrypt/aes', { plaintext: '%' }, 'failed to base64-decode plaintext'],
    ['encrypt/aes', { plaintext, key_version: -1 }, 'requested version for encryption is negative'],
    [
      'encrypt/aes',
      { plaintext, key_version: 9 },
      'requested version for encryption is higher than the latest key version',
    ],
    [
      'encrypt/old',
      { plaintext, key_version: 2 },
      'requested version for encryption is less than the minimum encryption key version',
    ],
    ['encrypt/y', { plaintext, type: 'ecdsa-p256' }, 'key type ecdsa-p256 not supported for this operation'],
    ['encrypt/y', { plaintext, type: 'zzz' }, 'unknown key type zzz'],
    [
      'encrypt/derived',
      { batch_input: [{ plaintext, context: hello }, { plaintext }] },
      'context should be set either in all the request blocks or in none',
    ],
    ['encrypt/aes', { batch_input: [] }, 'missing batch input to process'],
    ['encrypt/aes', { batch_input: [{}] }, 'missing plaintext to encrypt'],
  ],
  'decrypt/:name': [
    ['decrypt/none', { ciphertext: '<cipher>' }, 'encryption key not found'],
    ['decrypt/aes', {}, 'missing ciphertext to decrypt'],
    ['decrypt/aes', { ciphertext: 'x' }, 'invalid ciphertext: no prefix'],
    ['decrypt/aes', { ciphertext: 'vault:v1' }, 'invalid ciphertext: wrong number of fields'],
    ['decrypt/aes', { ciphertext: 'vault:vx:AA==' }, 'invalid ciphertext: version number could not be decoded'],
    ['decrypt/aes', { ciphertext: 'vault:v9:AA==' }, 'invalid ciphertext: version is too new'],
    ['decrypt/aes', { ciphertext: 'vault:v1:%' }, 'invalid ciphertext: could not decode base64'],
    ['decrypt/aes', { ciphertext: 'vault:v1:AA==' }, 'invalid ciphertext length'],
    ['decrypt/closed', { ciphertext: '<cipher>' }, 'cipher: message authentication failed'],
    ['decrypt/old', { ciphertext: '<oldest>' }, 'ciphertext or signature version is disallowed by policy (too old)'],
    ['decrypt/p256', { ciphertext: '<cipher>' }, 'message decryption not supported for key type ecdsa-p256'],
  ],
  'rewrap/:name': [
    ['rewrap/none', { ciphertext: '<cipher>' }, 'encryption key not found'],
    ['rewrap/aes', { ciphertext: 'x' }, 'invalid ciphertext: no prefix'],
  ],
  'datakey/:type/:name': [
    ['datakey/plaintext/none', {}, 'encryption key not found'],
    ['datakey/zzz/aes', {}, "Invalid path, must be 'plaintext' or 'wrapped'"],
    ['datakey/wrapped/aes', { bits: 100 }, 'invalid bit length'],
  ],
  random: [
    ['random/0', {}, "'bytes' cannot be less than 1"],
    ['random/131073', {}, "'bytes' should be less than 131072"],
    ['random/foo', {}, 'error parsing url-set byte count: strconv.Atoi: parsing "foo": invalid syntax'],
    ['random', { format: 'raw' }, 'unsupported encoding format "raw"; must be "hex" or "base64"'],
    ['random/foo/8', {}, 'unsupported entropy source "foo"; must be "platform" or "seal", or "all"'],
  ],
  hash: [
    ['hash', {}, 'input missing'],
    ['hash', { input: '%' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    ['hash/sha1', { input }, 'unsupported algorithm sha1'],
    ['hash', { input, format: 'x' }, 'unsupported encoding format x; must be "hex" or "base64"'],
  ],
  'hmac/:name': [
    ['hmac/none', { input }, 'encryption key not found'],
    ['hmac/aes', {}, 'missing input for HMAC'],
    ['hmac/aes', { input: '%' }, 'unable to decode input as base64'],
    ['hmac/aes', { input, key_version: 9 }, 'key version does not exist; latest key version is 1'],
    ['hmac/aes', { input, key_version: -1 }, 'key version does not exist (cannot be negative)'],
    ['hmac/old', { input, key_version: 1 }, 'cannot generate HMAC: version is too old (disallowed by policy)'],
  ],
  'sign/:name': [
    ['sign/none', { input }, 'key not found'],
    ['sign/aes', { input }, 'key type aes256-gcm96 does not support signing'],
    ['sign/p256', { input, hash_algorithm: 'sha9' }, 'invalid hash algorithm "sha9"'],
    [
      'sign/rsa',
      { input, hash_algorithm: 'none' },
      'hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15',
    ],
    ['sign/rsa', { input, signature_algorithm: 'zzz' }, 'unsupported rsa signature algorithm zzz'],
    ['sign/p256', { input, marshaling_algorithm: 'x' }, 'invalid marshaling type "x"'],
    ['sign/rsa', { input, salt_length: 'abc' }, "salt length neither 'auto', 'hash', nor an int: abc"],
    ['sign/rsa', { input, salt_length: -5 }, 'salt length is invalid: -5'],
    ['sign/rsa', { input, salt_length: 9999 }, 'requested salt length 9999 is invalid'],
    ['sign/p256', { input, key_version: 9 }, 'requested version for signing is higher than the latest key version'],
    ['sign/p256', { input, key_version: -1 }, 'requested version for signing is negative'],
  ],
  'verify/:name': [
    ['verify/none', { input, signature: '<signature>' }, 'key not found'],
    ['verify/p256', { input }, "neither a 'signature' nor an 'hmac' were given to verify"],
    ['verify/p256', { input, signature: 'a', hmac: 'b' }, "provide one of 'signature' or 'hmac'"],
    ['verify/p256', { input, signature: 'x' }, 'invalid signature: no prefix'],
    ['verify/p256', { input, signature: 'vault:v1' }, 'invalid signature: wrong number of fields'],
    ['verify/p256', { input, signature: 'vault:vx:AA==' }, 'invalid signature: version number could not be decoded'],
    ['verify/p256', { input, signature: 'vault:v9:AA==' }, 'invalid signature: version is too new'],
    ['verify/p256', { input, signature: 'vault:v1:%' }, 'invalid base64 signature value'],
    ['verify/p256', { input, signature: 'vault:v1:AA==' }, 'supplied signature is invalid'],
    ['verify/aes', { input, signature: '<signature>' }, 'key type aes256-gcm96 does not support verification'],
    ['verify/aes', { input, hmac: 'x' }, 'invalid HMAC to verify: no prefix'],
    ['verify/aes', { input, hmac: 'vault:v1' }, 'invalid HMAC: wrong number of fields'],
    ['verify/aes', { input, hmac: 'vault:vx:AA==' }, 'invalid HMAC: version number could not be decoded'],
    ['verify/aes', { input, hmac: 'vault:v9:AA==' }, 'invalid HMAC: version is too new'],
    ['verify/aes', { input, hmac: 'vault:v1:%' }, 'unable to decode verification HMAC as base64'],
    ['verify/aes', { batch_input: [] }, 'missing batch input to process'],
    ['verify/aes', { batch_input: [{ input }] }, "no batch_input elements have 'signature' or 'hmac'"],
    [
      'verify/aes',
      {
        batch_input: [
          { input, hmac: '<hmac>' },
          { input, signature: 'a' },
        ],
      },
      "elements of batch_input must all provide 'signature' or all provide 'hmac'",
    ],
    [
      'verify/aes',
      { batch_input: [{ input, hmac: '<hmac>' }, { input }] },
      "some elements of batch_input are missing 'hmac'",
    ],
  ],
  'cache-config': [['cache-config', { size: 5 }, 'size must be 0 or a value greater or equal to 10']],
}

describe('the reference’s words of', () => {
  test.each(Object.entries(rows))('%s', async (_, requests) => {
    const wrong: unknown[] = []
    for (const [path, body, text] of requests) {
      const { status, text: answer } = await node.root.post(`transit/${path}`, filled(body))
      const quoted = JSON.stringify(text).slice(1, -1)
      if (status !== 400 || !answer.includes(quoted)) wrong.push({ path, body, text, status, answer })
    }
    expect(wrong).toEqual([])
  })
})

describe('the reference’s words of a read of', () => {
  test.each([
    ['keys/none', 404, '{"errors":[]}'],
    ['keys', 405, 'unsupported operation'],
    ['export/encryption-key/none', 404, '{"errors":[]}'],
    ['export/zzz/aes', 400, 'invalid export type: zzz'],
    ['export/encryption-key/closed', 400, 'key material is not exportable'],
    ['export/encryption-key/aes/9', 400, 'version does not exist or cannot be found'],
    ['export/encryption-key/aes/x', 400, 'invalid key version'],
    ['export/encryption-key/aes?format=zzz', 400, 'invalid format: zzz'],
    ['export/signing-key/aes', 400, 'signing not supported for the key'],
    ['backup/none', 400, 'key \\"none\\" not found'],
    ['backup/aes', 400, 'plaintext backup is disallowed on the policy'],
    ['keys/derived?context=%25', 400, 'failed to base64-decode context'],
  ])('%s', async (path, status, text) => {
    const reply = await node.root.get(`transit/${path}`)
    expect(reply.text).toContain(text)
    expect(reply.status).toBe(status)
  })
})
