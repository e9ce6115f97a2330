import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { algorithms } from '../../../../src/keys/algorithms.ts'
import type { Reply } from '../../../support/client.ts'
import { done, expectData, expectRefused, fresh, hello, useNode } from '../../node.ts'
import { bytesOf } from '../../signing.ts'
import { envelopeOf, wrappingKeyOf } from '../envelope.ts'

/** SoftHSM lacks HMAC with SHA-3, and wants keys as long as the hash for SHA-384 and SHA-512. */
const node = useNode({ workers: 2 })
const hmac = (name: string, algorithm: string, more: Record<string, unknown> = {}) =>
  node.root.post(`transit/hmac/${name}`, { input: hello, algorithm, ...more })
const born = { residence: 'wrapped', local: true, always_sensitive: true, ever_plaintext: false }
const opened = { residence: 'enveloped', ever_plaintext: true }

interface Read {
  readonly data: { readonly custody: Record<string, Record<string, unknown> & { readonly hmac: unknown }> }
}
const custodyOf = async (name: string, version = 1) => {
  const { body } = await done(node.root.get(`transit/keys/${name}`))
  return (body as Read).data.custody[version]
}
const warningsOf = (reply: Reply) => (reply.body as { warnings: string[] | null }).warnings
const secretOf = async (name: string, version = 1) => {
  const reply = await done(node.root.get(`transit/export/hmac-key/${name}`))
  return Buffer.from(reply.string(`data.keys.${version}`), 'base64')
}
const lacksSha3 =
  'the HSM lacks CKM_SHA3_256_HMAC: the HMAC secret of version 1 was in the server’s memory for this request'
const tooShort =
  'CKM_SHA512_HMAC in the HSM takes secrets of 64 bytes or more, and that of version 1 has 32: its secret was in the server’s memory once, to be padded'

describe('the secret of a new key', () => {
  test.each([...algorithms.keys()])('of type %s is born in the token, through rotation too', async (type) => {
    const name = await node.key({ type })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    for (const version of [1, 2]) {
      const shown = await custodyOf(name, version)
      expect(type === 'hmac' ? shown : shown?.hmac).toMatchObject(born)
    }
  })

  test.each(['aes256-gcm96', 'ed25519'])('of type %s has 64 bytes, which serve every SHA-2', async (type) => {
    const name = await node.key({ type, exportable: true })
    const secret = await secretOf(name)
    expect(secret).toHaveLength(64)
    for (const bits of [224, 256, 384, 512]) {
      const reply = await hmac(name, `sha2-${bits}`)
      expect(warningsOf(reply)).toBeNull()
      const expected = createHmac(`sha${bits}`, secret).update('hello').digest()
      expect(bytesOf(reply.string('data.hmac'))).toEqual(expected)
    }
    expect((await custodyOf(name))?.hmac).toMatchObject(born)
  })

  test.each([
    [16, { residence: 'wrapped', local: false, ever_plaintext: true }],
    [32, born],
    [33, born],
    [64, born],
    [72, born],
    [65, opened],
  ])('of %i bytes shows where it was made', async (key_size, expected) => {
    expect(await custodyOf(await node.key({ type: 'hmac', key_size }))).toMatchObject(expected)
  })

  test('stays the same after a restart of its live object: 33 bytes are padded inside the token', async () => {
    const name = await node.key({ type: 'hmac', key_size: 33, exportable: true })
    const expected = createHmac('sha256', await secretOf(name))
      .update('hello')
      .digest()
    expect(bytesOf((await hmac(name, 'sha2-256')).string('data.hmac'))).toEqual(expected)
  })
})

describe('a secret that the token cannot serve', () => {
  test.each([{}, { exportable: true }])('is opened for SHA-3, which warns and is shown: %j', async (settings) => {
    const name = await node.key(settings)
    const before = await done(hmac(name, 'sha2-256'))
    // Brings it into the cache of every worker.
    for (let count = 0; count < 4; count += 1) expect((await custodyOf(name))?.hmac).toMatchObject(born)
    const first = await hmac(name, 'sha3-256')
    expectData(first, { hmac: expect.any(String) }, [lacksSha3])
    for (let count = 0; count < 4; count += 1) {
      expect((await custodyOf(name))?.hmac).toMatchObject({ ...born, ...opened })
    }
    for (let count = 0; count < 4; count += 1) {
      expectData(await hmac(name, 'sha3-256'), { hmac: first.string('data.hmac') }, [lacksSha3])
      expectData(await hmac(name, 'sha2-256'), { hmac: before.string('data.hmac') })
    }
    if (settings.exportable) {
      const expected = createHmac('sha3-256', await secretOf(name))
        .update('hello')
        .digest()
      expect(bytesOf(first.string('data.hmac'))).toEqual(expected)
    }
  })

  test('is filled up once for SHA-512, then served by the token in every worker', async () => {
    const name = await node.key({ type: 'hmac', exportable: true })
    // Every worker has the short secret loaded.
    const before = await Promise.all(Array.from({ length: 8 }, () => done(hmac(name, 'sha2-256'))))
    const first = await hmac(name, 'sha2-512')
    const secret = await secretOf(name)
    expect(secret).toHaveLength(32)
    const expected = createHmac('sha512', secret).update('hello').digest()
    expect(bytesOf(first.string('data.hmac'))).toEqual(expected)
    expect(warningsOf(first)).toEqual([tooShort])
    expect(await custodyOf(name)).toMatchObject(opened)
    for (const later of await Promise.all(Array.from({ length: 8 }, () => hmac(name, 'sha2-512')))) {
      expectData(later, { hmac: first.string('data.hmac') })
    }
    expectData(await hmac(name, 'sha2-256'), { hmac: before[0]?.string('data.hmac') })
  })

  test('is opened once by a batch, which warns once', async () => {
    const name = await node.key({ type: 'hmac' })
    const reply = await hmac(name, 'sha2-512', { batch_input: Array(300).fill({ input: hello }), input: undefined })
    expect(warningsOf(reply)).toEqual([tooShort])
    const results = (reply.body as { data: { batch_results: { hmac: string }[] } }).data.batch_results
    expect(new Set(results.map(({ hmac: text }) => text)).size).toBe(1)
    expect(await custodyOf(name)).toMatchObject(opened)
  })

  test('is the same whichever workers open it at the same time', async () => {
    const name = await node.key({ type: 'hmac' })
    const algorithms = ['sha3-256', 'sha2-512', 'sha2-384']
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, index) => done(hmac(name, algorithms[index % 3] ?? ''))),
    )
    for (const [index] of algorithms.entries()) {
      const texts = made.filter((_, at) => at % 3 === index).map((reply) => reply.string('data.hmac'))
      expect(new Set(texts).size).toBe(1)
    }
    expect(await custodyOf(name)).toMatchObject(opened)
  })

  test('is opened to verify, too', async () => {
    const name = await node.key()
    const reply = await node.root.post(`transit/verify/${name}`, {
      ...{ input: hello, algorithm: 'sha3-256', hmac: 'vault:v1:AAAA' },
    })
    expectData(reply, { valid: false }, [lacksSha3])
    expect((await custodyOf(name))?.hmac).toMatchObject(opened)
  })

  test('is that of its version alone', async () => {
    const name = await node.key()
    await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(hmac(name, 'sha3-256', { key_version: 1 }))
    expect((await custodyOf(name, 1))?.hmac).toMatchObject(opened)
    expect((await custodyOf(name, 2))?.hmac).toMatchObject(born)
  })

  test('survives being made exportable, a backup and a restore', async () => {
    const name = await node.key({ type: 'hmac' })
    const [sha3, sha512] = [await hmac(name, 'sha3-256'), await hmac(name, 'sha2-512')]
    await done(node.root.post(`transit/keys/${name}/config`, { exportable: true, allow_plaintext_backup: true }))
    const backup = (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
    const copy = fresh('k')
    expect((await node.root.post(`transit/restore/${copy}`, { backup })).status).toBe(204)
    for (const one of [name, copy]) {
      expect((await hmac(one, 'sha3-256')).string('data.hmac')).toBe(sha3.string('data.hmac'))
      expect((await hmac(one, 'sha2-512')).string('data.hmac')).toBe(sha512.string('data.hmac'))
    }
  })

  test('is named in the audit line of the request', async () => {
    const path = fresh('a')
    const directory = join(node.server.stateDirectory, 'audit')
    mkdirSync(directory, { recursive: true })
    const options = { file_path: join(directory, `${path}.log`) }
    await done(node.root.post(`sys/audit/${path}`, { type: 'file', options }))
    const name = await node.key()
    await done(hmac(name, 'sha3-256'))
    const lines = readdirSync(directory, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.includes(path))
      .flatMap((file) => readFileSync(join(directory, file), 'utf8').split('\n'))
      .filter((line) => line.includes('"type":"response"') && line.includes(`transit/hmac/${name}`))
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '').response.warnings).toEqual([lacksSha3])
    await done(node.root.delete(`sys/audit/${path}`))
  })
})

describe('hmac_in_hsm_only', () => {
  const refused = 'hmac_in_hsm_only: the HSM lacks CKM_SHA3_256_HMAC'
  const short =
    'hmac_in_hsm_only: CKM_SHA512_HMAC in the HSM takes secrets of 64 bytes or more, and that of version 1 has 32: key_size 64 serves every SHA-2'

  test('refuses requests that would open the secret, and leaves it in the token', async () => {
    const name = await node.key({ type: 'hmac', hmac_in_hsm_only: true })
    expectRefused(await hmac(name, 'sha3-256'), 400, refused)
    expectRefused(await hmac(name, 'sha2-512'), 400, short)
    expect((await hmac(name, 'sha2-256')).status).toBe(200)
    const { data } = (await node.root.get(`transit/keys/${name}`)).body as { data: Record<string, unknown> }
    expect(data).toMatchObject({ hmac_in_hsm_only: true, custody: { 1: born } })
  })

  test('is false unless given, and is set and lifted by config', async () => {
    const name = await node.key()
    const set = (on: boolean) => node.root.post(`transit/keys/${name}/config`, { hmac_in_hsm_only: on })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { hmac_in_hsm_only: false } })
    expect((await set(true)).body).toMatchObject({ data: { hmac_in_hsm_only: true } })
    expectRefused(await hmac(name, 'sha3-256'), 400, refused)
    expect((await node.root.post(`transit/keys/${name}/config`, {})).body).toMatchObject({
      data: { hmac_in_hsm_only: true },
    })
    expect((await set(false)).body).toMatchObject({ data: { hmac_in_hsm_only: false } })
    expectData(await hmac(name, 'sha3-256'), { hmac: expect.any(String) }, [lacksSha3])
    await done(set(true))
    expectRefused(await hmac(name, 'sha3-256'), 400, refused)
  })

  test('refuses a key that only memory can make or load', async () => {
    const settings = { type: 'hmac', hmac_in_hsm_only: true }
    const made = (key_size: number) => node.root.post(`transit/keys/${fresh('k')}`, { ...settings, key_size })
    expectRefused(
      await made(65),
      400,
      'hmac_in_hsm_only: the HSM unwraps secrets over 64 bytes only in multiples of 8 bytes',
    )
    expectRefused(
      await made(16),
      400,
      'hmac_in_hsm_only: CKM_SHA256_HMAC in the HSM takes secrets of 32 bytes or more, asked for 16',
    )
    const name = await node.key({ type: 'hmac', key_size: 65 })
    await done(node.root.post(`transit/keys/${name}/config`, { hmac_in_hsm_only: true }))
    expectRefused(
      await hmac(name, 'sha2-256'),
      400,
      'hmac_in_hsm_only: the HSM unwraps secrets over 64 bytes only in multiples of 8 bytes',
    )
  })

  test('is taken by an import', async () => {
    const name = fresh('k')
    const ciphertext = envelopeOf(await wrappingKeyOf(node.root), randomBytes(32))
    const body = { type: 'hmac', ciphertext, hmac_in_hsm_only: true }
    expect((await node.root.post(`transit/keys/${name}/import`, body)).status).toBe(204)
    expectRefused(await hmac(name, 'sha3-256'), 400, refused)
    expect((await hmac(name, 'sha2-512')).status).toBe(200)
  })

  test('goes with the key through backup and restore', async () => {
    const name = await node.key({ hmac_in_hsm_only: true, allow_plaintext_backup: true })
    const backup = (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
    const copy = fresh('k')
    expect((await node.root.post(`transit/restore/${copy}`, { backup })).status).toBe(204)
    expect((await node.root.get(`transit/keys/${copy}`)).body).toMatchObject({ data: { hmac_in_hsm_only: true } })
  })
})
