import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const config = (name: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${name}/config`, body)

/** A key with versions 1 to `versions`. */
async function rotated(versions: number, settings = {}): Promise<string> {
  const name = await node.key(settings)
  for (let version = 1; version < versions; version++) await done(node.root.post(`transit/keys/${name}/rotate`))
  return name
}

const encrypt = async (name: string, body: Record<string, unknown> = {}) =>
  node.root.post(`transit/encrypt/${name}`, { plaintext: hello, ...body })

describe('configuring a key', () => {
  test('answers the key object, and changes only the given settings', async () => {
    const name = await rotated(3, { auto_rotate_period: '2h' })
    const reply = await config(name, { min_decryption_version: 2, min_encryption_version: 3, deletion_allowed: true })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      data: {
        name,
        min_decryption_version: 2,
        min_encryption_version: 3,
        deletion_allowed: true,
        auto_rotate_period: 7200,
        exportable: false,
        latest_version: 3,
      },
      warnings: null,
    })
    expect((await config(name, { auto_rotate_period: 0 })).body).toMatchObject({
      data: { auto_rotate_period: 0, min_decryption_version: 2, deletion_allowed: true },
    })
  })

  test('with nothing asked for changes nothing', async () => {
    const name = await rotated(1)
    const before = await node.root.get(`transit/keys/${name}`)
    const reply = await config(name, {})
    expect(reply.body).toEqual({ ...(before.body as object), request_id: expect.any(String) })
  })

  test('turns a minimum decryption version of 0 into 1, with a warning', async () => {
    const reply = await config(await rotated(1), { min_decryption_version: 0 })
    expect(reply.body).toMatchObject({
      data: { min_decryption_version: 1 },
      warnings: ['since Vault 0.3, transit key numbering starts at 1; forcing minimum to 1'],
    })
  })

  test.each([
    [{ min_decryption_version: -1 }, 'min decryption version cannot be negative'],
    [{ min_encryption_version: -1 }, 'min encryption version cannot be negative'],
    [{ min_decryption_version: 9 }, 'cannot set min decryption version of 9, latest key version is 2'],
    [{ min_encryption_version: 9 }, 'cannot set min encryption version of 9, latest key version is 2'],
    [
      { min_decryption_version: 2, min_encryption_version: 1 },
      'cannot set min encryption/decryption values; min encryption version of 1 must be greater than or equal to min decryption version of 2',
    ],
    [{ auto_rotate_period: '59m' }, 'auto rotate period must be 0 to disable or at least an hour'],
  ])('with %j and a good setting is refused whole: %s', async (wrong, text) => {
    const name = await rotated(2)
    expectRefused(await config(name, { deletion_allowed: true, ...wrong }), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { deletion_allowed: false, min_decryption_version: 1, min_encryption_version: 0, auto_rotate_period: 0 },
    })
  })

  test('of a key that does not exist is refused', async () => {
    expectRefused(await config('nokey', {}), 400, 'no existing key named nokey could be found')
  })

  test('cannot take back that a plaintext backup is allowed', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    const reply = await config(name, { allow_plaintext_backup: false })
    expect(reply.body).toMatchObject({ data: { allow_plaintext_backup: true }, warnings: null })
  })
})

describe('a minimum version', () => {
  test('of decryption refuses ciphertexts of older versions, and lowering it allows them again', async () => {
    const name = await rotated(1)
    const { ciphertext } = ((await encrypt(name)).body as { data: { ciphertext: string } }).data
    await node.root.post(`transit/keys/${name}/rotate`)
    await config(name, { min_decryption_version: 2 })
    const old = 'ciphertext or signature version is disallowed by policy (too old)'
    expectRefused(await node.root.post(`transit/decrypt/${name}`, { ciphertext }), 400, old)
    expectRefused(await node.root.post(`transit/rewrap/${name}`, { ciphertext }), 400, old)
    await config(name, { min_decryption_version: 1 })
    expect((await node.root.post(`transit/decrypt/${name}`, { ciphertext })).string('data.plaintext')).toBe(hello)
  })

  test('of encryption refuses older versions, also to rewrap', async () => {
    const name = await rotated(3)
    await config(name, { min_encryption_version: 2 })
    const old = 'requested version for encryption is less than the minimum encryption key version'
    expectRefused(await encrypt(name, { key_version: 1 }), 400, old)
    expect((await encrypt(name, { key_version: 2 })).body).toMatchObject({ data: { key_version: 2 } })
    const ciphertext = (await encrypt(name)).string('data.ciphertext')
    expectRefused(await node.root.post(`transit/rewrap/${name}`, { ciphertext, key_version: 1 }), 400, old)
  })

  test('set by many clients at once ends at one of their values, with every answer consistent', async () => {
    const name = await rotated(4)
    const replies = await Promise.all([1, 2, 3, 4].map((version) => config(name, { min_decryption_version: version })))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const { body } = await node.root.get(`transit/keys/${name}`)
    const { min_decryption_version: lowest, keys } = (
      body as { data: { min_decryption_version: number; keys: Record<string, number> } }
    ).data
    expect(Object.keys(keys).map(Number)).toEqual([1, 2, 3, 4].filter((version) => version >= lowest))
  })
})

test('a key may be named like a verb', async () => {
  await done(node.root.post('transit/keys/config'))
  expect((await config('config', { deletion_allowed: true })).body).toMatchObject({ data: { name: 'config' } })
  expect((await node.root.post(`transit/keys/${fresh('k')}/nothing`)).status).toBe(404)
})
