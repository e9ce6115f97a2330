import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Reply } from '../../../support/client.ts'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const restore = (body: Record<string, unknown>, name?: string): Promise<Reply> =>
  node.root.post(`transit/restore${name === undefined ? '' : `/${name}`}`, body)
const backup = async (name: string): Promise<string> =>
  (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')
const dataOf = async (name: string): Promise<Record<string, unknown>> =>
  ((await done(node.root.get(`transit/keys/${name}`))).body as { data: Record<string, unknown> }).data

/** A client's view of a key, without the places of its copies and the times when they were made. */
async function faceOf(name: string): Promise<unknown> {
  const { custody: _, name: __, backup_info: ___, restore_info: ____, ...rest } = await dataOf(name)
  return rest
}

/** Ciphertexts and the like made with every version, which show whether a copy is the same key. */
async function makeWith(name: string, type: string, latest: number, context?: string) {
  const made: { path: string; body: Record<string, unknown> }[] = []
  const more = context === undefined ? {} : { context }
  for (let version = 1; version <= latest; version++) {
    const ask = { input: hello, plaintext: hello, key_version: version, ...more }
    if (type !== 'hmac' && (await dataOf(name)).supports_encryption) {
      const reply = await done(node.root.post(`transit/encrypt/${name}`, ask))
      made.push({ path: 'decrypt', body: { ciphertext: reply.string('data.ciphertext'), ...more } })
    }
    if ((await dataOf(name)).supports_signing) {
      const reply = await done(node.root.post(`transit/sign/${name}`, ask))
      made.push({ path: 'verify', body: { input: hello, signature: reply.string('data.signature'), ...more } })
    }
    const hmac = (await done(node.root.post(`transit/hmac/${name}`, ask))).string('data.hmac')
    made.push({ path: 'verify', body: { input: hello, hmac } })
  }
  return made
}

async function expectSame(name: string, made: Awaited<ReturnType<typeof makeWith>>): Promise<void> {
  for (const { path, body } of made) {
    const reply = await node.root.post(`transit/${path}/${name}`, body)
    expect(reply.body).toMatchObject({ data: path === 'decrypt' ? { plaintext: hello } : { valid: true } })
  }
}

describe('restore of a backup is the identity', () => {
  const context = base64('one user')
  test.each([
    ['aes128-gcm96', {}],
    ['aes256-gcm96', { exportable: true, deletion_allowed: true }],
    ['chacha20-poly1305', {}],
    ['aes256-gcm96', { derived: true }],
    ['aes256-gcm96', { derived: true, convergent_encryption: true }],
    ['ed25519', {}],
    ['ed25519', { derived: true }],
    ['ecdsa-p256', {}],
    ['ecdsa-p384', {}],
    ['ecdsa-p521', { auto_rotate_period: '24h' }],
    ['rsa-2048', {}],
    ['hmac', { key_size: 77 }],
  ] as const)('%s %o', async (type, settings) => {
    const name = await node.key({ type, allow_plaintext_backup: true, ...settings })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(node.root.post(`transit/keys/${name}/config`, { min_encryption_version: 1 }))
    const made = await makeWith(name, type, 2, 'derived' in settings ? context : undefined)
    const blob = await backup(name)
    const copy = fresh('r')
    const reply = await restore({ backup: blob }, copy)
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    expect(await faceOf(copy)).toEqual(await faceOf(name))
    await expectSame(copy, made)
    expect((await dataOf(copy)).custody).toMatchObject({
      1: { origin: 'restored', local: false },
      2: { origin: 'restored' },
    })
  })

  test('archived versions, which only a lower floor brings back, are in it', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    const made = await makeWith(name, 'aes256-gcm96', 1)
    await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2, min_encryption_version: 2 }))
    const copy = fresh('r')
    await done(restore({ backup: await backup(name), name: copy }))
    expect(await faceOf(copy)).toEqual(await faceOf(name))
    await done(node.root.post(`transit/keys/${copy}/config`, { min_decryption_version: 1 }))
    await expectSame(copy, made)
  })

  test('trimmed versions are not', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(node.root.post(`transit/keys/${name}/config`, { min_decryption_version: 2, min_encryption_version: 2 }))
    await done(node.root.post(`transit/keys/${name}/trim`, { min_available_version: 2 }))
    const copy = fresh('r')
    await done(restore({ backup: await backup(name) }, copy))
    expect(await faceOf(copy)).toEqual(await faceOf(name))
  })

  test('a public key without its private half stays one', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const name = fresh('i')
    const public_key = publicKey.export({ type: 'spki', format: 'pem' })
    const settings = { public_key, type: 'ecdsa-p256', allow_plaintext_backup: true }
    await done(node.root.post(`transit/keys/${name}/import`, settings))
    const copy = fresh('r')
    await done(restore({ backup: await backup(name) }, copy))
    expect(await faceOf(copy)).toEqual(await faceOf(name))
  })
})

test('backup and restore are written down on the keys', async () => {
  const name = await node.key({ allow_plaintext_backup: true })
  const info = { time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), version: 1 }
  const blob = await backup(name)
  expect(await dataOf(name)).toMatchObject({ backup_info: info })
  const copy = fresh('r')
  await done(restore({ backup: blob }, copy))
  expect(await dataOf(copy)).toMatchObject({ restore_info: info })
})

test('a backup needs allow_plaintext_backup, and nothing else', async () => {
  const name = await node.key({ exportable: true })
  expectRefused(await node.root.get(`transit/backup/${name}`), 400, 'plaintext backup is disallowed on the policy')
  await done(node.root.post(`transit/keys/${name}/config`, { allow_plaintext_backup: true }))
  expect((await node.root.get(`transit/backup/${name}`)).status).toBe(200)
  const absent = fresh('k')
  expectRefused(await node.root.get(`transit/backup/${absent}`), 400, `key "${absent}" not found`)
})

test('a key that gets allow_plaintext_backup later can be backed up with all it was', async () => {
  const name = await node.key({ type: 'ed25519' })
  await done(node.root.post(`transit/keys/${name}/rotate`))
  const made = await makeWith(name, 'ed25519', 2)
  await done(node.root.post(`transit/keys/${name}/config`, { allow_plaintext_backup: true }))
  const copy = fresh('r')
  await done(restore({ backup: await backup(name) }, copy))
  await expectSame(copy, made)
})

describe('an existing key', () => {
  test('is not replaced without force', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    expectRefused(await restore({ backup: await backup(name) }), 400, `key "${name}" already exists`)
  })

  test('is replaced by force whole, versions and all', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    const [made, blob] = [await makeWith(name, 'aes256-gcm96', 1), await backup(name)]
    const face = await faceOf(name)
    for (let count = 0; count < 2; count++) await done(node.root.post(`transit/keys/${name}/rotate`))
    await done(restore({ backup: blob, force: true }))
    expect(await faceOf(name)).toEqual(face)
    await expectSame(name, made)
  })

  test('that does not allow deletion can be replaced only with sudo', async () => {
    const name = await node.key({ allow_plaintext_backup: true })
    const blob = await backup(name)
    const limited = await node.limited('path "transit/*" { capabilities = ["create", "update", "read"] }')
    const force = () => limited.post(`transit/restore/${name}`, { backup: blob, force: true })
    const text = `key "${name}" already exists and does not allow deletion: replacing it needs deletion_allowed or sudo`
    expectRefused(await force(), 400, text)
    await done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    expect((await force()).status).toBe(204)
  })
})

describe('an invalid backup', () => {
  const text = 'the backup cannot be read: it is damaged, or not from Strongroom, Vault or OpenBao'

  test('is refused with one text, cut short or changed anywhere, and nothing is there afterwards', async () => {
    const name = await node.key({ type: 'ecdsa-p256', allow_plaintext_backup: true })
    const blob = await backup(name)
    const bytes = Buffer.from(blob, 'base64')
    const bad: string[] = [
      blob.slice(0, -8),
      blob.slice(8),
      `${blob}AAAA`,
      '!',
      base64('{}'),
      base64('null'),
      base64('[]'),
    ]
    for (let count = 0; count < 40; count++) {
      const copy = Buffer.from(bytes)
      const at = Math.floor((count * bytes.length) / 40)
      copy[at] = (copy[at] ?? 0) ^ (1 << (count % 7))
      bad.push(copy.toString('base64'))
    }
    const target = fresh('r')
    for (const one of bad) expectRefused(await restore({ backup: one }, target), 400, text)
    expect((await node.root.get(`transit/keys/${target}`)).status).toBe(404)
  })

  test('deep JSON is refused by its depth, and giant numbers with the same text', async () => {
    const deep = `${'[{"policy":'.repeat(100_000)}1${'}]'.repeat(100_000)}`
    const depth = 'refused JSON input due to high complexity: nested deeper than 64 levels'
    expectRefused(await restore({ backup: base64(deep) }, fresh('r')), 400, depth)
    const digits = `{"policy":{"type":${'9'.repeat(200_000)}}}`
    for (const one of [digits, `{"policy":{"latest_version":9007199254740991}}`]) {
      expectRefused(await restore({ backup: base64(one) }, fresh('r')), 400, text)
    }
  })

  test('a later format is named', async () => {
    const reply = await restore({ backup: base64('{"strongroom_backup":2,"key":{}}') }, fresh('r'))
    expectRefused(reply, 400, 'the backup has format 2, and this server reads up to 1')
  })

  test('names that no key can have are refused', async () => {
    const blob = await backup(await node.key({ allow_plaintext_backup: true }))
    expectRefused(await restore({ backup: blob, name: 'a/b' }), 400, 'key names cannot be paths')
    for (const path of ['a/b', 'a/b/c', 'a/']) {
      const reply = await restore({ backup: blob, name: 'c' }, `${path}d`)
      expectRefused(reply, 400, 'key names cannot be paths')
    }
    expectRefused(await restore({}, 'a/b'), 400, "'backup' must be supplied")
    const elsewhere = await node.limited('path "transit/restore/a" { capabilities = ["update", "create"] }')
    expect((await elsewhere.post('transit/restore/a/b', { backup: blob })).status).toBe(403)
    expectRefused(await restore({ backup: blob, name: '-a' }), 400, 'invalid key name')
    expectRefused(await restore({ backup: blob }, '-a'), 400, 'invalid key name')
    expectRefused(await restore({}), 400, "'backup' must be supplied")
  })
})
