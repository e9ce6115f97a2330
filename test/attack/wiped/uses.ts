import { createPrivateKey, createPublicKey, hkdfSync, randomBytes } from 'node:crypto'
import { base64, fresh, hello } from '../../api/node.ts'
import { imported } from './moving.ts'
import { at, type Calls, forEach, type Work } from './work.ts'

/** Keys that are used, and what they protect. */

const transit = (...routes: readonly string[]) => at('transit', ...routes)

/** The plaintexts that encryption, decryption and rewrapping by a key work with, alone and in a batch. */
async function ciphering(calls: Calls, name: string, more: Readonly<Record<string, string>> = {}) {
  const [one, ...several] = Array.from({ length: 4 }, () => randomBytes(96))
  const sealed = await calls.post(`transit/encrypt/${name}`, { plaintext: base64(one ?? ''), ...more })
  const ciphertext = sealed.string('data.ciphertext')
  await calls.post(`transit/decrypt/${name}`, { ciphertext, ...more })
  await calls.post(`transit/rewrap/${name}`, { ciphertext, ...more })
  const plaintexts = several.map((bytes) => ({ plaintext: base64(bytes), ...more }))
  const batch = await calls.post(`transit/encrypt/${name}`, { batch_input: plaintexts })
  const results = (batch.body as { data: { batch_results: readonly { ciphertext: string }[] } }).data.batch_results
  const batch_input = results.map(({ ciphertext }) => ({ ciphertext, ...more }))
  for (const path of ['decrypt', 'rewrap']) await calls.post(`transit/${path}/${name}`, { batch_input })
  return Object.fromEntries([one ?? Buffer.alloc(0), ...several].map((bytes, index) => [`plaintext ${index}`, bytes]))
}

/** Data keys of both kinds; a wrapped one is known by its decryption. */
async function dataKeys(calls: Calls, name: string) {
  const plain = await calls.post(`transit/datakey/plaintext/${name}`)
  const wrapped = await calls.post(`transit/datakey/wrapped/${name}`)
  const opened = await calls.post(`transit/decrypt/${name}`, { ciphertext: wrapped.string('data.ciphertext') })
  const bytes = (text: string) => Buffer.from(text, 'base64')
  return {
    'data key': bytes(plain.string('data.plaintext')),
    'wrapped data key': bytes(opened.string('data.plaintext')),
  }
}

export const ciphers = transit(
  'POST encrypt/:name',
  'POST decrypt/:name',
  'POST rewrap/:name',
  'POST datakey/:type/:name',
)

export async function allOf(calls: Calls, name: string) {
  return { ...(await ciphering(calls, name)), ...(await dataKeys(calls, name)) }
}

const ofEachCipher = forEach(['aes256-gcm96', 'chacha20-poly1305', 'rsa-2048'], (type) => ({
  title: `what is encrypted by ${type}`,
  through: ciphers,
  async run(calls) {
    const name = fresh('w')
    await calls.post(`transit/keys/${name}`, { type })
    return allOf(calls, name)
  },
}))

/** HMACs that SoftHSM makes of no key of this size, so that its secret is opened, and padded for some of them. */
const openedHmacs = forEach([32, 48], (bytes) => ({
  title: `HMACs by opened secrets of ${bytes} bytes`,
  soon: true,
  through: transit(
    'POST hmac/:name',
    'POST hmac/:name/:algorithm',
    'POST verify/:name',
    'POST verify/:name/:hash_algorithm',
  ),
  async run(calls) {
    const name = fresh('w')
    await calls.post(`transit/keys/${name}`, { type: 'hmac', key_size: bytes, exportable: true })
    for (const algorithm of ['sha2-384', 'sha2-512', 'sha3-256', 'sha3-512']) {
      const made = await calls.post(`transit/hmac/${name}/${algorithm}`, { input: hello })
      const hmac = made.string('data.hmac')
      await calls.post(`transit/verify/${name}/${algorithm}`, { input: hello, hmac })
      const batch_input = [
        { input: hello, hmac },
        { input: hello, hmac },
      ]
      await calls.post(`transit/verify/${name}`, { algorithm, batch_input })
      await calls.post(`transit/hmac/${name}`, { algorithm, batch_input: [{ input: hello }, { input: base64('b') }] })
    }
    const exported = await calls.get(`transit/export/hmac-key/${name}`)
    return { secret: Buffer.from(exported.string('data.keys.1'), 'base64') }
  },
}))

const rawPoint = (pkcs8: Buffer): Buffer =>
  createPublicKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }))
    .export({ format: 'der', type: 'spki' })
    .subarray(-32)

const byOneKey: readonly Work[] = [
  {
    title: 'use of an opened chacha20-poly1305 key',
    through: ciphers,
    async run(calls) {
      const { name, secrets } = await imported(calls, 'chacha20-poly1305')
      return { ...secrets, ...(await allOf(calls, name)) }
    },
  },
  {
    title: 'signatures by an opened key',
    through: transit('POST sign/:name', 'POST sign/:name/:hash_algorithm', 'POST keys/:name/csr'),
    async run(calls) {
      const { name, secrets } = await imported(calls, 'ed25519')
      await calls.post(`transit/sign/${name}`, { input: hello })
      await calls.post(`transit/sign/${name}/sha2-256`, { batch_input: [{ input: hello }, { input: hello }] })
      await calls.post(`transit/keys/${name}/csr`)
      return secrets
    },
  },
  {
    title: 'signatures by a derived key',
    through: transit('POST sign/:name', 'POST verify/:name'),
    async run(calls) {
      const context = randomBytes(24)
      const more = { context: base64(context) }
      const { name, bytes } = await imported(calls, 'ed25519', { derived: true, ...more })
      const made = await calls.post(`transit/sign/${name}`, { input: hello, ...more })
      await calls.post(`transit/verify/${name}`, { input: hello, signature: made.string('data.signature'), ...more })
      const root = bytes.subarray(-32)
      const pair = Buffer.concat([root, rawPoint(bytes)])
      const derived = Buffer.from(hkdfSync('sha256', pair, Buffer.alloc(0), context, 32))
      return { 'root: seed': root, 'derived: seed': derived }
    },
  },
  {
    title: 'encryption and decryption by a derived key',
    through: transit('POST encrypt/:name', 'POST decrypt/:name', 'POST rewrap/:name'),
    async run(calls) {
      const context = randomBytes(24)
      const more = { context: base64(context) }
      const { name, bytes: root } = await imported(calls, 'aes256-gcm96', { derived: true, ...more })
      const plaintexts = await ciphering(calls, name, more)
      const derived = Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), context, 32))
      return { root, derived, ...plaintexts }
    },
  },
  {
    title: 'encryption and decryption by a convergent key',
    through: transit('POST encrypt/:name', 'POST decrypt/:name', 'POST rewrap/:name'),
    async run(calls) {
      const [name, context] = [fresh('w'), randomBytes(24)]
      const settings = { derived: true, convergent_encryption: true, exportable: true }
      await calls.post(`transit/keys/${name}`, settings)
      const plaintexts = await ciphering(calls, name, { context: base64(context) })
      const exported = await calls.get(`transit/export/encryption-key/${name}`)
      const root = Buffer.from(exported.string('data.keys.1'), 'base64')
      const derived = Buffer.from(hkdfSync('sha256', root, Buffer.alloc(0), context, 32))
      return { root, derived, ...plaintexts }
    },
  },
  {
    title: 'refused encryption',
    through: transit('POST encrypt/:name'),
    async run(calls) {
      const [name, plaintext, damaged] = [fresh('w'), randomBytes(96), randomBytes(97)]
      await calls.post(`transit/encrypt/${name}`, { plaintext: hello })
      await calls.refused(`transit/encrypt/${name}`, { plaintext: base64(plaintext), key_version: 7 })
      await calls.refused(`transit/encrypt/${name}`, { plaintext: base64(damaged).replace('=', '') })
      return { plaintext, damaged }
    },
  },
]

const randomOf = (mount: string, path: string): Work => ({
  title: `random bytes of ${mount}`,
  through: at(mount, ...['', '/:first', '/:source/:bytes'].map((rest) => `POST ${path}${rest}`)),
  async run(calls) {
    const rests = ['', '/64', '/platform/64', '/seal/64', '/all/64']
    const replies = await Promise.all(rests.map((rest) => calls.post(`${mount}/${path}${rest}`)))
    return Object.fromEntries(
      replies.map((reply, index) => [`of ${rests[index]}`, Buffer.from(reply.string('data.random_bytes'), 'base64')]),
    )
  },
})

export const uses: readonly Work[] = [
  ...ofEachCipher,
  ...openedHmacs,
  ...byOneKey,
  randomOf('transit', 'random'),
  randomOf('sys', 'tools/random'),
]
