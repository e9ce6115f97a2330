import { generateKeyPairSync, hkdfSync, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'
import { envelopeOf, importKey, wrappingKeyOf } from '../envelope.ts'

const node = useSharedNode()
const post = (path: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${path}`, body)
const ciphertextOf = async () => envelopeOf(await wrappingKeyOf(node.root), randomBytes(32))
const context = base64('one user')

test('settings of an import are shown on read', async () => {
  const name = fresh('i')
  const settings = { exportable: true, allow_plaintext_backup: true, allow_rotation: true, auto_rotate_period: '2h' }
  await importKey(node.root, name, randomBytes(32), settings)
  expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
    data: {
      ...{ exportable: true, allow_plaintext_backup: true, auto_rotate_period: 7200 },
      ...{ imported_key: true, imported_key_allow_rotation: true, allow_rotation: true },
    },
  })
})

test('an imported key rotates only when allowed by allow_rotation, and then no longer counts as imported', async () => {
  const [fixed, free] = [fresh('i'), fresh('i')]
  await importKey(node.root, fixed, randomBytes(32), {})
  await importKey(node.root, free, randomBytes(32), { allow_rotation: true })
  const text = `imported key ${fixed} does not allow rotation within Vault`
  expectRefused(await node.root.post(`transit/keys/${fixed}/rotate`), 400, text)
  const rotated = await done(node.root.post(`transit/keys/${free}/rotate`))
  expect(rotated.body).toMatchObject({ data: { imported_key: false, latest_version: 2 } })
})

describe('an existing key is not imported over', () => {
  const text =
    'the import path cannot be used with an existing key; use import-version to rotate an existing imported key'

  test.each([
    ['made', async () => node.key()],
    ['made and used', async () => used(await node.key())],
    ['imported', imported],
    ['imported and used', async () => used(await imported())],
  ])('%s here, whatever comes for it', async (_, make) => {
    const name = await make()
    const sealed = await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
    const whole = await ciphertextOf()
    const bodies = {
      whole,
      'cut short': whole.slice(0, -4),
      foreign: base64(randomBytes(560)),
      'no base64': '!',
      '': '',
    }
    for (const [what, ciphertext] of Object.entries(bodies)) {
      const reply = await post(`${name}/import`, { ciphertext, type: 'aes256-gcm96' })
      expect({ what, reply: reply.body }).toEqual({ what, reply: { errors: [text] } })
      expect(reply.status).toBe(400)
    }
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') })
    expect(opened.string('data.plaintext')).toBe(hello)
  })
})

async function imported(): Promise<string> {
  const name = fresh('i')
  await importKey(node.root, name, randomBytes(32), {})
  return name
}

/** Often enough that both workers have read it. */
async function used(name: string): Promise<string> {
  const uses = Array.from({ length: 16 }, () => node.root.post(`transit/encrypt/${name}`, { plaintext: hello }))
  for (const use of uses) await done(use)
  return name
}

test('of many imports of one name at once one wins', async () => {
  const name = fresh('i')
  const ciphertexts = await Promise.all(Array.from({ length: 24 }, () => ciphertextOf()))
  const replies = await Promise.all(
    ciphertexts.map((ciphertext) => post(`${name}/import`, { ciphertext, type: 'aes256-gcm96' })),
  )
  expect(replies.map(({ status }) => status).sort()).toEqual([204, ...Array(23).fill(400)])
})

test('a derived key needs a context, and derives as HKDF-SHA-256 does', async () => {
  const [name, key] = [fresh('i'), randomBytes(32)]
  const ciphertext = envelopeOf(await wrappingKeyOf(node.root), key)
  const derived = (more: Record<string, unknown>) => post(`${name}/import`, { ciphertext, derived: true, ...more })
  for (const none of [{}, { context: '' }, { context: '\n' }])
    expectRefused(await derived(none), 400, 'context is required when derived is true')
  expect((await derived({ context: '!' })).text).toMatch(/failed to base64-decode context/)
  await done(derived({ context }))
  const reply = await done(node.root.post(`transit/encrypt/${name}`, { plaintext: hello, context }))
  const copy = fresh('i')
  await importKey(node.root, copy, Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), 'one user', 32)), {})
  const opened = await node.root.post(`transit/decrypt/${copy}`, { ciphertext: reply.string('data.ciphertext') })
  expect(opened.string('data.plaintext')).toBe(hello)
})

test('each rule that is broken is named', async () => {
  const ciphertext = await ciphertextOf()
  const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' })
  const refuse = async (body: Record<string, unknown>, text: string) =>
    expectRefused(await post(`${fresh('i')}/import`, body), 400, text)
  await refuse({ ciphertext, type: 'Des' }, 'unknown key type: Des')
  await refuse({ ciphertext, type: 'managed_key' }, 'unknown key type: managed_key')
  await refuse({ ciphertext, hash_function: 'MD5' }, 'unknown hash function: MD5')
  await refuse({ ciphertext, public_key }, 'only one of the following fields, ciphertext and public_key, can be set')
  await refuse({}, 'one of the fields ciphertext and public_key is required')
  await refuse({ public_key, type: 'hmac' }, 'provided type does not support public_key import: hmac')
  await refuse({ public_key, type: 'ecdsa-p256' }, 'invalid key type: expected ec, got ed25519')
  await refuse(
    { ciphertext, convergent_encryption: true },
    'import cannot be used on keys with convergent encryption enabled',
  )
  await refuse(
    { ciphertext, auto_rotate_period: '2h' },
    'allow_rotation must be set to true if auto-rotation is enabled',
  )
  await refuse(
    { ciphertext, type: 'ecdsa-p256', derived: true, context },
    'key derivation and convergent encryption not supported for keys of type ecdsa-p256',
  )
  await refuse(
    { public_key, type: 'ed25519', derived: true, context },
    'unable to import only public key for derived Ed25519 key: keys are derived from its private key',
  )
})
