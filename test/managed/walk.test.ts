import { describe, expect, test } from 'vitest'
import { routes as transit } from '../../src/engines/transit/index.ts'
import { table as system } from '../../src/system/index.ts'
import { done, expectRefused, fresh, hello } from '../api/node.ts'
import blobs from '../api/transit/fixtures/vaultblobs.json' with { type: 'json' }
import { Walked } from '../support/walked.ts'
import { tool } from './tool.ts'
import { at, dataOf, useWorld } from './world.ts'

/** A user with a second token, from pkcs11-tool to the last deletion: each test continues from the one before. */
const world = useWorld()
const ofSys = Object.values(system).filter(({ path }) => path.startsWith('managed-keys/'))
const walked = new Walked({ transit, sys: ofSys })
const root = () => walked.noting(world.root)
/** Routes that meet no key of a caller. */
const unmet = [
  ...['GET wrapping_key', 'GET config/keys', 'POST config/keys', 'GET cache-config', 'POST cache-config'],
  ...['POST hash', 'POST hash/:algorithm', 'POST random', 'POST random/:first', 'POST random/:source/:bytes'],
].map((route) => `transit: ${route}`)
const settingsOf = (more?: Readonly<Record<string, unknown>>) => world.settingsOf(more)
const names = { ec: fresh('ec'), pss: fresh('pss'), oaep: fresh('oaep'), aes: fresh('aes') }
const mounts = ['transit', fresh('m')] as const
const payments = fresh('k')
const ca = fresh('pki')
const paths = mounts.map((mount) => `${mount}/keys/${payments}`)

const read = async (path: string) => dataOf(await done(root().get(path)))
const post = (path: string, body?: unknown) => done(root().post(path, body))
const text = (reply: { string(path: string): string }, field: string) => reply.string(`data.${field}`)

async function keyOf(managed_key_name: string): Promise<string> {
  const name = fresh('k')
  await post(`transit/keys/${name}`, { type: 'managed_key', managed_key_name })
  return name
}

describe('a second token, walked through', { shuffle: false }, () => {
  test('its keys are named, listed, read and tried', async () => {
    await post(at(names.ec), settingsOf())
    await post(at(names.pss), settingsOf({ key_label: 'rsa', mechanism: '0xd', key_bits: 2048 }))
    await post(at(names.oaep), settingsOf({ key_label: 'rsa', mechanism: '0x9' }))
    await post(at(names.aes), settingsOf({ key_label: 'aes', mechanism: '0x1087', key_bits: 256 }))
    const { keys } = dataOf(await done(root().list('sys/managed-keys/pkcs11')))
    expect(keys).toEqual(expect.arrayContaining(Object.values(names)))
    expect(await read(at(names.aes))).toMatchObject({
      key_bits: 256,
      mechanism: 0x1087,
      usages: ['encrypt', 'decrypt'],
    })
    for (const name of [names.ec, names.pss]) await post(`${at(name)}/test/sign`)
    const refused = await root().post(`${at(names.aes)}/test/sign`)
    expectRefused(refused, 400, `managed key "${names.aes}" is for CKM_AES_GCM, which does not sign`)
  })

  test('key_bits of an AES key must be its size', async () => {
    const bits = (key_bits: number) => settingsOf({ key_label: 'aes', mechanism: '0x1087', key_bits })
    const name = fresh('aes')
    const small = await root().post(at(name), bits(128))
    expectRefused(small, 400, `managed key "${name}": key_bits is 128, and the object is a key of 256 bits`)
    expectRefused(await root().post(at(name), bits(2048)), 400, 'key_bits must be one of 128, 256')
  })

  test('one key serves several Transit keys, in two mounts', async () => {
    await post(`sys/mounts/${mounts[1]}`, { type: 'transit' })
    for (const path of paths) await post(path, { type: 'managed_key', managed_key_name: names.ec })
  })

  test('a Transit key rotates to the same, to another, and back to an earlier one', async () => {
    const [path = ''] = paths
    for (const managed_key_name of [names.ec, names.pss, names.ec]) {
      const rotated = dataOf(await post(`${path}/rotate`, { managed_key_name }))
      expect(rotated).toMatchObject({ managed_key_name })
    }
    const signatures = new Map<number, string>()
    for (const key_version of [1, 2, 3, 4]) {
      signatures.set(
        key_version,
        text(await post(`transit/sign/${payments}`, { input: hello, key_version }), 'signature'),
      )
    }
    for (const signature of signatures.values()) {
      const checked = await post(`transit/verify/${payments}`, { input: hello, signature })
      expect(dataOf(checked)).toEqual({ valid: true })
    }
    const other = await post(`transit/verify/${payments}`, {
      input: hello,
      signature: signatures.get(1)?.replace('v1', 'v3'),
    })
    expect(dataOf(other)).toEqual({ valid: false })
  })

  test.each([
    ['ec', { supports_signing: true, supports_encryption: false, supports_decryption: false }],
    ['pss', { supports_signing: true, supports_encryption: false, supports_decryption: false }],
    ['oaep', { supports_signing: false, supports_encryption: true, supports_decryption: true }],
    ['aes', { supports_signing: false, supports_encryption: true, supports_decryption: true }],
  ] as const)('a read of a Transit key of %s shows the abilities of its mechanism', async (name, abilities) => {
    const made = await read(`transit/keys/${await keyOf(names[name])}`)
    expect(made).toMatchObject({ ...abilities, supports_derivation: false })
  })

  test.each(['oaep', 'aes'] as const)('encrypts, decrypts, rewraps and makes data keys by %s', async (name) => {
    const key = await keyOf(names[name])
    const ciphertext = text(await post(`transit/encrypt/${key}`, { plaintext: hello }), 'ciphertext')
    await post(`transit/keys/${key}/rotate`, { managed_key_name: names[name] })
    const anew = text(await post(`transit/rewrap/${key}`, { ciphertext }), 'ciphertext')
    expect(anew).toMatch(/^vault:v2:/)
    for (const one of [ciphertext, anew]) {
      expect(text(await post(`transit/decrypt/${key}`, { ciphertext: one }), 'plaintext')).toBe(hello)
    }
    const wrapped = text(await post(`transit/datakey/wrapped/${key}`), 'ciphertext')
    const opened = text(await post(`transit/decrypt/${key}`, { ciphertext: wrapped }), 'plaintext')
    expect(Buffer.from(opened, 'base64')).toHaveLength(32)
    const made = dataOf(await post(`transit/datakey/plaintext/${key}`))
    expect(text(await post(`transit/decrypt/${key}`, { ciphertext: made.ciphertext }), 'plaintext')).toBe(
      made.plaintext,
    )
  })

  test('makes HMACs, signatures with a named hash, and batches', async () => {
    for (const rest of ['', '/sha2-512']) {
      const hmac = text(await post(`transit/hmac/${payments}${rest}`, { input: hello }), 'hmac')
      expect(dataOf(await post(`transit/verify/${payments}${rest}`, { input: hello, hmac }))).toEqual({ valid: true })
    }
    const signature = text(await post(`transit/sign/${payments}/sha2-256`, { input: hello }), 'signature')
    const checked = await post(`transit/verify/${payments}/sha2-256`, { input: hello, signature })
    expect(dataOf(checked)).toEqual({ valid: true })
    const batch = dataOf(await post(`transit/sign/${payments}`, { batch_input: [{ input: hello }, { input: hello }] }))
    expect(batch.batch_results).toHaveLength(2)
  })

  test('has HMAC secrets of its own, born in the server’s token', async () => {
    const { custody } = await read(`transit/keys/${payments}`)
    const born = { residence: 'wrapped', local: true, always_sensitive: true, ever_plaintext: false }
    expect(Object.values(custody as Record<string, unknown>)).toHaveLength(4)
    for (const shown of Object.values(custody as Record<string, unknown>)) expect(shown).toMatchObject({ hmac: born })
  })

  test('nothing moves the key out of its token', async () => {
    const recipient = fresh('r')
    await post(`transit/keys/${recipient}`, { type: 'rsa-2048' })
    await post(`transit/keys/${recipient}-out`, { type: 'aes256-gcm96', exportable: true })
    // It takes keys that may leave.
    await done(root().get(`transit/byok-export/${recipient}/${recipient}-out`))
    const stays = /managed_key stay in their token|key is not exportable|plaintext backup is disallowed/
    for (const way of ['export/signing-key', `byok-export/${recipient}`, 'backup']) {
      for (const version of way === 'backup' ? [''] : ['', '/1']) {
        const refused = await root().get(`transit/${way}/${payments}${version}`)
        expect([way, refused.status, refused.text]).toEqual([way, 400, expect.stringMatching(stays)])
      }
    }
    const wish = await root().post(`transit/keys/${payments}/config`, { exportable: true })
    expectRefused(wish, 400, 'keys of type managed_key stay in their token: they cannot be exported or backed up')
  })

  test('nothing moves another key into its place', async () => {
    const ciphertext = Buffer.alloc(600).toString('base64')
    const version = await root().post(`transit/keys/${payments}/import_version`, { ciphertext })
    expectRefused(version, 400, 'the import_version endpoint can only be used with an imported key')
    const whole = await root().post(`transit/keys/${fresh('i')}/import`, { ciphertext, type: 'managed_key' })
    expectRefused(whole, 400, 'unknown key type: managed_key')
    for (const rest of ['', `/${fresh('v')}`]) {
      const restored = await root().post(`transit/restore${rest}`, { backup: blobs.managed })
      const reason =
        'the backup contains a managed key, which stays in its HSM: configure that key here and refer to it'
      expectRefused(restored, 400, reason)
    }
  })

  test('is soft-deleted, refuses to sign, and comes back', async () => {
    await done(root().delete(`transit/keys/${payments}/soft-delete`))
    expect((await root().post(`transit/sign/${payments}`, { input: hello })).status).toBe(400)
    await post(`transit/keys/${payments}/soft-delete-restore`)
    await post(`transit/sign/${payments}`, { input: hello })
  })

  test('a managed key that is updated keeps what is not named, and serves on', async () => {
    await post(at(names.pss), { usages: ['sign', 'verify'] })
    expect(await read(at(names.pss))).toMatchObject({ usages: ['sign', 'verify'], key_bits: 2048, mechanism: 0xd })
    await post(`transit/sign/${payments}`, { input: hello, key_version: 3 })
  })

  test('is read in public, configured and trimmed as any other key', async () => {
    const { keys } = await read(`transit/keys/${payments}`)
    const shown = { public_key: expect.stringContaining('BEGIN PUBLIC KEY') }
    expect(keys).toMatchObject({ 1: shown, 2: shown, 3: shown, 4: shown })
    await post(`transit/keys/${payments}/config`, { min_decryption_version: 3, min_encryption_version: 3 })
    await post(`transit/keys/${payments}/trim`, { min_available_version: 2 })
    const old = await root().post(`transit/sign/${payments}`, { input: hello, key_version: 1 })
    expect(old.status).toBe(400)
  })

  test('is the key of a certificate authority as well', async () => {
    await post(`sys/mounts/${ca}`, { type: 'pki' })
    const wanted = { common_name: 'Walked Root', managed_key_name: names.ec, key_name: 'hsm', ttl: '24h' }
    await post(`${ca}/root/generate/kms`, wanted)
    await post(`${ca}/roles/r`, { allow_any_name: true, key_type: 'ec' })
    await post(`${ca}/issue/r`, { common_name: 'a.example', ttl: '1h' })
  })

  test('is certified by no request of its own: its mechanism may have no name in one', async () => {
    const { certificate_chain: chain = [] } = dataOf(
      await post(`${ca}/issue/r`, { common_name: 'b.example', ttl: '1h' }),
    )
    for (const [path, body] of [
      ['csr', {}],
      ['set-certificate', { certificate_chain: String(chain) }],
    ] as const) {
      const refused = await root().post(`transit/keys/${payments}/${path}`, body)
      expectRefused(refused, 400, "key type 'managed_key' does not support signing")
    }
  })

  test('is not deleted while it is used, and the refusal names its users', async () => {
    const refused = await root().delete(at(names.ec))
    expect(refused.status).toBe(400)
    expect(refused.text).toMatch(/is used by .*: delete or trim what uses it first/)
    for (const path of paths) {
      await post(`${path}/config`, { deletion_allowed: true })
      expect((await root().delete(at(names.ec))).status).toBe(400)
      await done(root().delete(path))
    }
    const { keys } = dataOf(await done(root().list('transit/keys')))
    for (const key of keys as string[]) {
      await post(`transit/keys/${key}/config`, { deletion_allowed: true })
      await done(root().delete(`transit/keys/${key}`))
    }
    const left = await root().delete(at(names.ec))
    expect([left.status, left.text]).toEqual([400, expect.stringContaining(`is used by ${ca}/key/hsm:`)])
    await done(root().delete(`sys/mounts/${ca}`))
  })

  test('is deleted here, and stays in its token', async () => {
    for (const name of Object.values(names)) {
      await done(root().delete(at(name)))
      expect((await root().get(at(name))).status).toBe(404)
    }
    const objects = await tool(world.sibling, '-O')
    for (const name of ['ec', 'rsa', 'aes']) expect(objects).toMatch(new RegExp(`label: +${name}\\n`))
  })

  test('every route of Transit and of managed keys was walked, or meets no key of a caller', () => {
    expect(walked.left.toSorted()).toEqual(unmet.toSorted())
  })
})
