import { createECDH, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Reply } from '../../../support/client.ts'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { wrappingKeyOf } from '../envelope.ts'
import { backup, blobOf, keyOf } from '../strongroomblob.ts'

/** Keys of a thousand versions, which only years of rotation give, or a backup. */
const node = useSharedNode()
const thousand = 1000

/** PKCS#8 of a fresh P-256 key, without the public half. */
function p256(): Buffer {
  const curve = createECDH('prime256v1')
  curve.generateKeys()
  const scalar = Buffer.concat([Buffer.alloc(32), curve.getPrivateKey()]).subarray(-32)
  return Buffer.concat([
    Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex'),
    scalar,
  ])
}
const makers = { 'aes256-gcm96': () => randomBytes(32), 'ecdsa-p256': p256 }
type Type = keyof typeof makers

/** A key of so many versions, by a backup that is written here. */
async function forge(type: Type, count: number, settings: Record<string, unknown> = {}): Promise<string> {
  const first = keyOf(await backup(node, await node.key({ type, allow_plaintext_backup: true, exportable: true })))
  const versions = Array.from({ length: count }, (_, index) => ({
    ...first.versions[0],
    ...{ version: index + 1, key: base64(makers[type]()), hmac_key: base64(randomBytes(32)) },
  }))
  return blobOf({ ...first, deletion_allowed: true, latest_version: count, versions, ...settings })
}

/** Expects that other requests are answered while this one is under way: it must not block a worker. */
async function beside(slow: Promise<Reply>): Promise<Reply> {
  let ended = false
  let served = 0
  const ending = slow.finally(() => {
    ended = true
  })
  while (!ended) {
    await done(node.root.get('auth/token/lookup-self'))
    if (!ended) served++
    await delay(25)
  }
  expect(served).toBeGreaterThan(2)
  return done(ending)
}

const dataOf = ({ body }: Reply) => (body as { data: { keys: Record<string, unknown> } & Record<string, unknown> }).data
const count = (reply: Reply): number => Object.keys(dataOf(reply).keys).length

describe.each<Type>(['aes256-gcm96', 'ecdsa-p256'])('a key of type %s of a thousand versions', (type) => {
  test('is restored, read, exported, backed up, restored again, rotated, trimmed and deleted, and others are served meanwhile', async () => {
    const name = fresh('m')
    await beside(node.root.post(`transit/restore/${name}`, { backup: await forge(type, thousand) }))
    const made = await done(node.root.post(`transit/hmac/${name}`, { input: hello, key_version: 1 }))
    expect(count(await done(node.root.get(`transit/keys/${name}`)))).toBe(thousand)
    const kind = type === 'ecdsa-p256' ? 'signing-key' : 'encryption-key'
    expect(count(await beside(node.root.get(`transit/export/${kind}/${name}`)))).toBe(thousand)
    const to = fresh('m')
    const recipient = { public_key: await wrappingKeyOf(node.root), type: 'rsa-4096' }
    await done(node.root.post(`transit/keys/${to}/import`, recipient))
    expect(count(await beside(node.root.get(`transit/byok-export/${to}/${name}`)))).toBe(thousand)
    const saved = await beside(node.root.get(`transit/backup/${name}`))
    await beside(node.root.post(`transit/restore/${name}`, { backup: saved.string('data.backup'), force: true }))
    expect(
      await done(node.root.post(`transit/verify/${name}`, { input: hello, hmac: made.string('data.hmac') })),
    ).toMatchObject({ body: { data: { valid: true } } })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const floor = thousand - 9
    await done(
      node.root.post(`transit/keys/${name}/config`, { min_decryption_version: floor, min_encryption_version: floor }),
    )
    await done(node.root.post(`transit/keys/${name}/trim`, { min_available_version: floor }))
    expect(count(await done(node.root.get(`transit/keys/${name}`)))).toBe(11)
    await done(node.root.post(`transit/restore/${name}`, { backup: saved.string('data.backup'), force: true }))
    await done(node.root.delete(`transit/keys/${name}`))
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
  }, 300_000)
})

test('a key of a thousand versions that could not leave is made exportable whole', async () => {
  const name = fresh('m')
  const settings = { exportable: false, allow_plaintext_backup: false }
  await done(node.root.post(`transit/restore/${name}`, { backup: await forge('aes256-gcm96', thousand, settings) }))
  await beside(node.root.post(`transit/keys/${name}/config`, { exportable: true }))
  expect(count(await done(node.root.get(`transit/export/encryption-key/${name}`)))).toBe(thousand)
}, 120_000)

test('a key of more than 5,000 versions is refused, by the number', async () => {
  const name = fresh('m')
  const text = 'invalid backup: more than 5000 versions'
  expectRefused(
    await node.root.post(`transit/restore/${name}`, { backup: await forge('aes256-gcm96', 5001) }),
    400,
    text,
  )
  await done(node.root.post(`transit/restore/${name}`, { backup: await forge('aes256-gcm96', 5000) }))
  await done(node.root.delete(`transit/keys/${name}`))
}, 120_000)
