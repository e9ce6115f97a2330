import { beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/engines/transit/index.ts'
import { fresh, hello, useNode } from '../node.ts'

const node = useNode()
let key: string
const state = async () => ((await node.root.get(`transit/keys/${key}`)).body as { data: unknown }).data

beforeAll(async () => {
  key = await node.key({ type: 'ecdsa-p256' })
})

/** Fields that sign and verify both take. */
const scheme = {
  input: hello,
  context: '',
  hash_algorithm: 'sha2-256',
  prehashed: false,
  signature_algorithm: 'pss',
  marshaling_algorithm: 'asn1',
  salt_length: 'auto',
  partial_failure_response_code: 200,
}

/** A good body of each endpoint, whose fields the tests below spoil one by one. */
const endpoints: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'keys/NEW': {
    type: 'aes256-gcm96',
    derived: false,
    convergent_encryption: false,
    exportable: false,
    allow_plaintext_backup: false,
    key_size: 0,
    hmac_in_hsm_only: false,
    auto_rotate_period: 0,
    managed_key_name: '',
    managed_key_id: '',
  },
  'keys/KEY/config': {
    min_decryption_version: 1,
    min_encryption_version: 0,
    deletion_allowed: true,
    exportable: true,
    allow_plaintext_backup: true,
    hmac_in_hsm_only: false,
    auto_rotate_period: 0,
  },
  'keys/KEY/rotate': { managed_key_name: '', managed_key_id: '' },
  'encrypt/NEW': {
    plaintext: hello,
    associated_data: '',
    context: '',
    key_version: 0,
    nonce: '',
    padding_scheme: '',
    partial_failure_response_code: 400,
    type: 'aes256-gcm96',
    convergent_encryption: false,
  },
  'decrypt/KEY': {
    ciphertext: 'vault:v1:AAAA',
    associated_data: '',
    context: '',
    nonce: '',
    padding_scheme: '',
    partial_failure_response_code: 400,
  },
  'rewrap/KEY': {
    ciphertext: 'vault:v1:AAAA',
    associated_data: '',
    context: '',
    key_version: 0,
    nonce: '',
    decrypt_padding_scheme: '',
    encrypt_padding_scheme: '',
    partial_failure_response_code: 200,
  },
  'datakey/wrapped/KEY': {
    bits: 256,
    associated_data: '',
    context: '',
    key_version: 0,
    nonce: '',
    padding_scheme: '',
  },
  'sign/KEY': { ...scheme, key_version: 0 },
  'verify/KEY': { ...scheme, signature: 'vault:v1:AAAA', hmac: '' },
  'hmac/KEY': { input: hello, hash_algorithm: 'sha2-256', key_version: 0, partial_failure_response_code: 200 },
  'keys/NEW/import': {
    ciphertext: 'AAAA',
    public_key: '',
    hash_function: 'SHA256',
    type: 'aes256-gcm96',
    allow_rotation: false,
    derived: false,
    context: '',
    convergent_encryption: false,
    exportable: false,
    allow_plaintext_backup: false,
    hmac_in_hsm_only: false,
    auto_rotate_period: 0,
  },
  'keys/KEY/import_version': { ciphertext: 'AAAA', public_key: '', hash_function: 'SHA256', version: 0 },
  'keys/KEY/trim': { min_available_version: 1 },
  'keys/KEY/csr': { version: 0, csr: '' },
  'keys/KEY/set-certificate': { version: 0, certificate_chain: '' },
  restore: { backup: 'AAAA', name: '', force: false },
  'config/keys': { disable_upsert: false },
  'cache-config': { size: 0 },
  random: { bytes: 1, format: 'hex', source: 'platform' },
  hash: { input: hello, algorithm: 'sha2-256', format: 'hex' },
}

/** Values that no field of the kind can have, though the reference reads much leniently. */
const wrong = (good: unknown): readonly unknown[] => {
  if (typeof good === 'number') return ['x', 1.5, {}, [], '1e3', 2 ** 60]
  if (typeof good === 'boolean') return ['maybe', {}, []]
  return [{}, [], [hello], { a: 1 }]
}

const cases = Object.entries(endpoints).flatMap(([path, body]) =>
  Object.entries(body).map(([field, good]) => [path, field, good] as const),
)

test('every field of every route that writes is here, but for batches', () => {
  const writes = routes.filter(({ method }) => method === 'POST')
  const here = (path: string) => {
    const pattern = new RegExp(`^${path.replace(/:\w+\*?/g, '[^/]+')}$`)
    return cases.filter(([url]) => pattern.test(url)).map(([, field]) => field)
  }
  const missing = writes.flatMap(({ path, body }) => {
    const same = writes.filter((other) => other.body === body).flatMap((other) => here(other.path))
    const fields = Object.keys(body.properties).filter((field) => field !== 'batch_input' && !same.includes(field))
    return fields.map((field) => `${path}: ${field}`)
  })
  expect(missing).toEqual([])
})

test.each(cases)('POST %s refuses a wrong %s by its name and changes nothing', async (path, field, good) => {
  const before = await state()
  for (const value of wrong(good)) {
    const name = fresh('k')
    const url = path.replace('KEY', key).replace('NEW', name)
    const reply = await node.root.post(`transit/${url}`, { ...endpoints[path], [field]: value })
    expect(reply.status, `${JSON.stringify(value)}: ${reply.text}`).toBe(400)
    expect((reply.body as { errors: string[] }).errors).toEqual([
      expect.stringMatching(`^Field validation failed: error converting input for field "${field}": `),
    ])
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  }
  expect(await state()).toEqual(before)
})

test.each(cases)('POST %s takes a null %s as absent', async (path, field) => {
  const url = path.replace('KEY', key).replace('NEW', fresh('k'))
  const { [field]: _, ...rest } = endpoints[path] ?? {}
  const settings = path.endsWith('config')
    ? { deletion_allowed: false, exportable: false, allow_plaintext_backup: false }
    : {}
  const answers = []
  for (const body of [
    { ...rest, ...settings, [field]: null },
    { ...rest, ...settings },
  ]) {
    const { status, body: answer } = await node.root.post(`transit/${url}`, body)
    answers.push({ status, errors: (answer as { errors?: string[] }).errors })
  }
  expect(answers[0]).toEqual(answers[1])
})

describe('a refusal', () => {
  test('never repeats the value: it may be a secret', async () => {
    const secret = 'c2VjcmV0IHZhbHVl!'
    for (const body of [{ plaintext: secret }, { plaintext: [secret] }, { plaintext: hello, key_version: secret }]) {
      const reply = await node.root.post(`transit/encrypt/${fresh('k')}`, body)
      expect(reply.status).toBe(400)
      expect(reply.text).not.toContain('c2VjcmV0')
    }
    expect(node.server.output()).not.toContain('c2VjcmV0')
  })

  test('is all there is: no request of this file met a fault of the server', () => {
    expect(node.server.output()).not.toMatch(/server fault/)
  })
})
