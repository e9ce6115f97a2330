import { describe, expect, test } from 'vitest'
import { enveloped, expectRefused, fresh, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const create = (name: string, body: Record<string, unknown> = {}) => node.root.post(`transit/keys/${name}`, body)

/** History of a key that was born in the token and never left it. */
const born = {
  residence: 'wrapped',
  state: 'active',
  origin: 'generated',
  created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  created_by: expect.stringMatching(/^root hmac-sha256:[0-9a-f]{64}$/),
  local: true,
  never_extractable: false,
  always_sensitive: true,
  ever_plaintext: false,
  exportable: false,
  fingerprint: null,
}

describe('creating a key', () => {
  test('answers the key object, with the defaults of the specification', async () => {
    const name = fresh('k')
    const reply = await create(name)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual(
      enveloped({
        allow_plaintext_backup: false,
        allow_rotation: false,
        auto_rotate_period: 0,
        convergent_encryption: false,
        custody: { 1: { ...born, hmac: born } },
        deletion_allowed: false,
        derived: false,
        exportable: false,
        hmac_in_hsm_only: false,
        imported_key: false,
        key_size: 0,
        keys: { 1: expect.any(Number) },
        latest_version: 1,
        managed_key_id: '',
        managed_key_name: '',
        min_available_version: 0,
        min_decryption_version: 1,
        min_encryption_version: 0,
        name,
        soft_deleted: false,
        supports_decryption: true,
        supports_derivation: true,
        supports_encryption: true,
        supports_signing: false,
        type: 'aes256-gcm96',
      }),
    )
  })

  test.each(['ecdsa-p224', 'rsa-1024', 'rsa-8192'])('refuses %s, a type of certificates alone', async (type) => {
    expectRefused(await create(fresh('k'), { type }), 400, `unknown key type ${type}`)
    const name = fresh('k')
    const imported = await node.root.post(`transit/keys/${name}/import`, { type, ciphertext: 'AAAA' })
    expect(imported.status).toBe(400)
    expect(imported.text).toContain(type)
    const upsert = await node.root.post(`transit/encrypt/${name}`, { type, plaintext: 'aGVsbG8=' })
    expect(upsert.status).toBe(400)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test('keeps an existing key unchanged, for any requested type', async () => {
    const name = fresh('k')
    const first = await create(name, { type: 'aes128-gcm96' })
    const again = await create(name, { type: 'ed25519', exportable: true })
    expect(again.status).toBe(200)
    expect(again.body).toEqual({ ...(first.body as object), request_id: expect.any(String) })
  })

  test.each([
    { type: 'chacha20-poly1305', derived: true, convergent_encryption: true },
    { type: 'hmac', key_size: 48, exportable: true },
    { type: 'ecdsa-p384', allow_plaintext_backup: true, auto_rotate_period: 3600 },
  ])('takes %j, and shows it in the answer and on read', async (settings) => {
    const name = fresh('k')
    const made = await create(name, settings)
    expect(made.body).toMatchObject({ data: settings, warnings: null })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: settings })
  })

  test('at the same moment from many clients makes one key', async () => {
    const name = fresh('k')
    const replies = await Promise.all(Array.from({ length: 8 }, () => create(name)))
    expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(new Set(replies.map(({ body }) => JSON.stringify((body as { data: unknown }).data))).size).toBe(1)
  })

  test('takes the spellings of Go clients, PUT as POST, and fields set to null as absent', async () => {
    const name = fresh('k')
    const body = {
      exportable: 'true',
      allow_plaintext_backup: 1,
      auto_rotate_period: '1h30m',
      type: null,
      derived: null,
    }
    const reply = await node.root.call('PUT', `transit/keys/${name}`, body)
    expect(reply.body).toMatchObject({
      data: { exportable: true, allow_plaintext_backup: true, auto_rotate_period: 5400, type: 'aes256-gcm96' },
    })
  })

  test('warns of unknown fields, which Terraform sends', async () => {
    const name = fresh('k')
    const reply = await create(name, { min_encryption_versoin: 0, bar: 1, name: 'other', key_size: 0 })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      data: { name },
      warnings: [
        'Endpoint ignored these unrecognized parameters: [bar min_encryption_versoin]',
        "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [name]",
      ],
    })
  })
})

describe('an hmac key', () => {
  test.each([
    [undefined, 32],
    [0, 32],
    [16, 16],
    [33, 33],
    [64, 64],
    [100, 100],
    [512, 512],
  ])('asked for with key_size %s has %i bytes, through rotation too', async (asked, bytes) => {
    const name = fresh('k')
    const settings = asked === undefined ? {} : { key_size: asked }
    const made = await create(name, { type: 'hmac', exportable: true, ...settings })
    expect(made.body).toMatchObject({ data: { key_size: bytes, keys: { 1: expect.any(Number) } } })
    const rotated = await node.root.post(`transit/keys/${name}/rotate`)
    expect(rotated.body).toMatchObject({ data: { key_size: bytes, latest_version: 2 } })
    const reply = await node.root.get(`transit/export/hmac-key/${name}`)
    for (const version of [1, 2]) {
      expect(Buffer.from(reply.string(`data.keys.${version}`), 'base64')).toHaveLength(bytes)
    }
  })

  test.each([15, 513, -1, 1_000_000])('of %i bytes is refused', async (size) => {
    const name = fresh('k')
    const text = `invalid key_size ${size}: must be between 16 and 512`
    expectRefused(await create(name, { type: 'hmac', key_size: size }), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })
})

describe('creation is refused', () => {
  test.each([
    [{ type: 'aes512-gcm96' }, 'unknown key type aes512-gcm96'],
    [{ type: 'AES256-GCM96' }, 'unknown key type AES256-GCM96'],
    [{ key_size: 32 }, 'key_size is not valid for algorithm aes256-gcm96'],
    [{ convergent_encryption: true }, 'convergent encryption requires derivation to be enabled'],
    [
      { type: 'rsa-2048', derived: true },
      'key derivation and convergent encryption not supported for keys of type rsa-2048',
    ],
    [
      { type: 'ed25519', derived: true, convergent_encryption: true },
      'convergent encryption not supported for keys of type ed25519',
    ],
    [{ auto_rotate_period: 3599 }, 'auto rotate period must be 0 to disable or at least an hour'],
    [{ type: 'managed_key', managed_key_name: 'x' }, 'managed key "x" does not exist'],
  ])('with %j: %s', async (body, text) => {
    const name = fresh('k')
    expectRefused(await create(name, body), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  })

  test.each(['a/b', '-a', 'a-', '.a', 'a b', 'ä', 'a*'])('under the name %j, which no key may have', async (name) => {
    const reply = await create(encodeURIComponent(name).replaceAll('%2F', '/'))
    expectRefused(reply, 404, '1 error occurred:\n\t* unsupported path\n\n')
  })
})
