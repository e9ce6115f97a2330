import {
  constants,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  privateDecrypt,
} from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { publicKeyOf } from '../../signing.ts'
import { hashFunctions, wrappingKeyOf } from '../envelope.ts'

const node = useSharedNode()
const path = (dst: string, src: string, rest = '') => `transit/byok-export/${dst}/${src}${rest}`
const keysOf = async (url: string): Promise<Record<string, string>> =>
  ((await done(node.root.get(url))).body as { data: { keys: Record<string, string> } }).data.keys

/** A key `dst` whose private half the test has. */
async function recipient(modulusLength = 2048) {
  const pair = generateKeyPairSync('rsa', { modulusLength })
  const name = fresh('dst')
  const public_key = pair.publicKey.export({ format: 'pem', type: 'spki' })
  await done(node.root.post(`transit/keys/${name}/import`, { public_key, type: `rsa-${modulusLength}` }))
  return { name, privateKey: pair.privateKey, bytes: modulusLength / 8 }
}

function opened(
  { privateKey, bytes }: Awaited<ReturnType<typeof recipient>>,
  text: string,
  oaepHash = 'sha256',
): Buffer {
  const whole = Buffer.from(text, 'base64')
  const padding = constants.RSA_PKCS1_OAEP_PADDING
  const transport = privateDecrypt({ key: privateKey, padding, oaepHash }, whole.subarray(0, bytes))
  const cipher = createDecipheriv('id-aes256-wrap-pad', transport, Buffer.from('a65959a6', 'hex'))
  return Buffer.concat([cipher.update(whole.subarray(bytes)), cipher.final()])
}

describe('byok-export', () => {
  test.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'hmac'])(
    'gives the bytes of %s keys',
    async (type) => {
      const [dst, src] = [await recipient(), await node.key({ type, exportable: true })]
      const kind = type === 'hmac' ? 'hmac-key' : 'encryption-key'
      const reply = await done(node.root.get(`transit/export/${kind}/${src}`))
      const keys = await keysOf(path(dst.name, src))
      expect(opened(dst, keys[1] ?? '').toString('base64')).toBe(reply.string('data.keys.1'))
    },
  )

  test.each(['ecdsa-p256', 'ecdsa-p521', 'ed25519', 'rsa-2048'])('gives the PKCS#8 of %s keys', async (type) => {
    const [dst, src] = [await recipient(3072), await node.key({ type, exportable: true })]
    const keys = await keysOf(path(dst.name, src))
    const key = createPrivateKey({ key: opened(dst, keys[1] ?? ''), format: 'der', type: 'pkcs8' })
    expect(createPublicKey(key).equals(await publicKeyOf(node.root, src))).toBe(true)
  })

  test.each(hashFunctions)('uses %s where it is asked for', async (hash, oaepHash) => {
    const [dst, src] = [await recipient(), await node.key({ exportable: true })]
    const keys = await keysOf(path(dst.name, src, `?hash=${hash}`))
    expect(opened(dst, keys[1] ?? '', oaepHash).length).toBe(32)
  })

  test('to a wrapping key has the form of an import', async () => {
    const mount = await node.mount()
    const [dst, src] = [fresh('dst'), await node.key({ exportable: true })]
    const public_key = await wrappingKeyOf(node.root, mount)
    await done(node.root.post(`transit/keys/${dst}/import`, { public_key, type: 'rsa-4096' }))
    const sealed = (await node.root.post(`transit/encrypt/${src}`, { plaintext: hello })).string('data.ciphertext')
    const ciphertext = (await keysOf(path(dst, src)))[1]
    await done(node.root.post(`${mount}/keys/${src}/import`, { ciphertext, type: 'aes256-gcm96' }))
    const reply = await node.root.post(`${mount}/decrypt/${src}`, { ciphertext: sealed })
    expect(reply.string('data.plaintext')).toBe(hello)
  })

  test('gives one version or all', async () => {
    const [dst, src] = [await recipient(), await node.key({ exportable: true })]
    await done(node.root.post(`transit/keys/${src}/rotate`))
    expect(Object.keys(await keysOf(path(dst.name, src)))).toEqual(['1', '2'])
    expect(Object.keys(await keysOf(path(dst.name, src, '/latest')))).toEqual(['2'])
    expect(Object.keys(await keysOf(path(dst.name, src, '/1')))).toEqual(['1'])
    expect(Object.keys(await keysOf(path(dst.name, src, '?version=1')))).toEqual(['1'])
  })

  test('is refused with an explanation', async () => {
    const [dst, open, closed] = [await recipient(), await node.key({ exportable: true }), await node.key()]
    const refuse = async (url: string, text: string) => expectRefused(await node.root.get(url), 400, text)
    await refuse(path(fresh('k'), open), 'no such destination key to export to')
    await refuse(path(dst.name, fresh('k')), 'no such source key for export')
    await refuse(path(open, open), 'unsupported key type in use; must be a rsa key')
    await refuse(path(dst.name, closed), 'key is not exportable')
    await refuse(path(dst.name, open, '?hash=md5'), 'unknown hash function: md5')
    const half = fresh('i')
    const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' })
    await done(node.root.post(`transit/keys/${half}/import`, { public_key, type: 'ed25519', exportable: true }))
    await refuse(path(dst.name, half), 'version 1 does not contain a private part')
  })
})
