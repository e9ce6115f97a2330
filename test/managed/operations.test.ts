import { createPublicKey, constants as padding, publicEncrypt, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, done, expectRefused, fresh, hello } from '../api/node.ts'
import { dataOf, useWorld } from './world.ts'

const world = useWorld()
const bytesOf = (tagged: string) => Buffer.from(tagged.split(':')[2] ?? '', 'base64')
const publicKeyOf = async (key: string) =>
  createPublicKey((await world.root.get(`transit/keys/${key}`)).string('data.keys.1.public_key'))

describe('a key that pkcs11-tool made', () => {
  test('signs by ECDSA, and anybody verifies it', async () => {
    const key = await world.keyOf(world.settingsOf())
    const signed = await done(world.root.post(`transit/sign/${key}`, { input: hello }))
    const signature = signed.string('data.signature')
    expect(verify('sha256', Buffer.from('hello'), await publicKeyOf(key), bytesOf(signature))).toBe(true)
    const ours = await done(world.root.post(`transit/verify/${key}`, { input: hello, signature }))
    expect(dataOf(ours)).toEqual({ valid: true })
    const wrong = await done(world.root.post(`transit/verify/${key}`, { input: base64('jello'), signature }))
    expect(dataOf(wrong)).toEqual({ valid: false })
  })

  test.each(['sha2-256', 'sha2-512', 'sha3-256'])(
    'signs by ECDSA on P-384 over %s, prehashed and not',
    async (hash) => {
      const key = await world.keyOf(world.settingsOf({ key_label: 'ec384' }))
      for (const prehashed of [false, true]) {
        const input = { input: prehashed ? base64(Buffer.alloc(32, 7)) : hello, prehashed, hash_algorithm: hash }
        for (const marshaling_algorithm of ['asn1', 'jws']) {
          const signed = await done(world.root.post(`transit/sign/${key}`, { ...input, marshaling_algorithm }))
          const signature = signed.string('data.signature')
          const checked = await done(
            world.root.post(`transit/verify/${key}`, { ...input, marshaling_algorithm, signature }),
          )
          expect(dataOf(checked)).toEqual({ valid: true })
        }
      }
    },
  )

  test('signs by PKCS#1 v1.5 if that is its mechanism’s only padding, without being asked', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'rsa', mechanism: '0x0001' }))
    const signed = await done(world.root.post(`transit/sign/${key}`, { input: hello }))
    const { key: openKey, ...rsa } = { key: await publicKeyOf(key), padding: padding.RSA_PKCS1_PADDING }
    const signature = bytesOf(signed.string('data.signature'))
    expect(verify('sha256', Buffer.from('hello'), { key: openKey, ...rsa }, signature)).toBe(true)
    const none = { input: hello, hash_algorithm: 'none', prehashed: true, signature_algorithm: 'pkcs1v15' }
    await done(world.root.post(`transit/sign/${key}`, none))
    const refused = await world.root.post(`transit/sign/${key}`, { input: hello, signature_algorithm: 'pss' })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('signs by CKM_RSA_PKCS: signature_algorithm must be pkcs1v15')
  })

  test.each(['sha2-256', 'sha2-384', 'sha3-512'])('signs by PSS over %s', async (hash) => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'rsa', mechanism: '0xd' }))
    const asked = { input: hello, hash_algorithm: hash, salt_length: 'hash' }
    const signed = await done(world.root.post(`transit/sign/${key}`, asked))
    const checked = await done(
      world.root.post(`transit/verify/${key}`, { ...asked, signature: signed.string('data.signature') }),
    )
    expect(dataOf(checked)).toEqual({ valid: true })
  })

  test('decrypts messages that were encrypted to its public key by OAEP with SHA-256', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'rsa', mechanism: '0x9' }))
    const ours = await done(world.root.post(`transit/encrypt/${key}`, { plaintext: hello }))
    const back = await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: ours.string('data.ciphertext') }))
    expect(back.string('data.plaintext')).toBe(hello)
    const oaep = { padding: padding.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
    const sealed = publicEncrypt({ key: await publicKeyOf(key), ...oaep }, Buffer.from('hello'))
    const theirs = await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: `vault:v1:${base64(sealed)}` }))
    expect(theirs.string('data.plaintext')).toBe(hello)
    expectRefused(
      await world.root.post(`transit/decrypt/${key}`, { ciphertext: `vault:v1:${base64(Buffer.alloc(256, 1))}` }),
      400,
      'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error',
    )
    const aad = await world.root.post(`transit/encrypt/${key}`, { plaintext: hello, associated_data: hello })
    expect(aad.status).toBe(400)
  })

  test('encrypts by AES-GCM with the IV of the caller, and with one of its own', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'aes', mechanism: '0x1087' }))
    const nonce = base64(Buffer.alloc(12, 9))
    const theirs = { plaintext: hello, nonce, associated_data: base64('aad') }
    const sealed = (await done(world.root.post(`transit/encrypt/${key}`, theirs))).string('data.ciphertext')
    expect(bytesOf(sealed)).toHaveLength(5 + 16)
    const asked = { ciphertext: sealed, nonce, associated_data: base64('aad') }
    expect((await done(world.root.post(`transit/decrypt/${key}`, asked))).string('data.plaintext')).toBe(hello)
    for (const wrong of [{ nonce: base64(Buffer.alloc(12)) }, { associated_data: base64('b') }, { nonce: '' }]) {
      const refused = await world.root.post(`transit/decrypt/${key}`, { ...asked, ...wrong })
      expectRefused(refused, 400, 'cipher: message authentication failed')
    }
    const own = (await done(world.root.post(`transit/encrypt/${key}`, { plaintext: hello }))).string('data.ciphertext')
    expect(bytesOf(own)).toHaveLength(12 + 5 + 16)
    expect((await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: own }))).string('data.plaintext')).toBe(
      hello,
    )
    expectRefused(
      await world.root.post(`transit/encrypt/${key}`, { plaintext: hello, nonce: base64(Buffer.alloc(16)) }),
      400,
      'base64-decoded nonce must be 12 bytes long but given 16 bytes',
    )
  })

  test('encrypts by AES-CBC with an IV of 16 bytes; empty and whole blocks too', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'aes', mechanism: '0x1085' }))
    const nonce = base64(Buffer.alloc(16, 3))
    for (const plaintext of ['', hello, base64(Buffer.alloc(32, 5))]) {
      for (const iv of [{ nonce }, {}]) {
        const sealed = (await done(world.root.post(`transit/encrypt/${key}`, { plaintext, ...iv }))).string(
          'data.ciphertext',
        )
        const back = await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: sealed, ...iv }))
        expect(back.string('data.plaintext')).toBe(plaintext)
      }
    }
    const short = await world.root.post(`transit/encrypt/${key}`, { plaintext: hello, nonce: base64(Buffer.alloc(12)) })
    expectRefused(short, 400, 'base64-decoded nonce must be 16 bytes long but given 12 bytes')
    const aad = await world.root.post(`transit/encrypt/${key}`, { plaintext: hello, associated_data: hello })
    expect(aad.text).toContain('CKM_AES_CBC_PAD, which authenticates nothing')
  })

  test('AES-CBC is not rewrapped, whether the padding is good or bad, and is still decrypted', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'aes', mechanism: '0x1085' }))
    const good = (await done(world.root.post(`transit/encrypt/${key}`, { plaintext: hello }))).string('data.ciphertext')
    // The last byte of the IV changes the last byte of the padding.
    const changed = bytesOf(good)
    changed.writeUInt8(changed.readUInt8(15) ^ 1, 15)
    const bad = `vault:v1:${base64(changed)}`
    const refusal =
      'rewrap is not for CKM_AES_CBC_PAD: its refusals would show callers who may not decrypt whether a padding is good'
    for (const ciphertext of [good, bad]) {
      expectRefused(await world.root.post(`transit/rewrap/${key}`, { ciphertext }), 400, refusal)
    }
    const both = [{ ciphertext: good }, { ciphertext: bad }]
    const batch = await world.root.post(`transit/rewrap/${key}`, { batch_input: both })
    expect(dataOf(batch).batch_results).toEqual(both.map(() => ({ error: refusal, reference: '' })))
    const back = await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: good }))
    expect(back.string('data.plaintext')).toBe(hello)
    expect((await world.root.post(`transit/decrypt/${key}`, { ciphertext: bad })).status).toBe(400)
  })

  test('serves datakey and rewrap, and batches in which one item fails', async () => {
    const key = await world.keyOf(world.settingsOf({ key_label: 'aes', mechanism: '0x1087' }))
    const made = dataOf(await done(world.root.post(`transit/datakey/plaintext/${key}`)))
    const again = await done(world.root.post(`transit/rewrap/${key}`, { ciphertext: made.ciphertext }))
    const back = await done(world.root.post(`transit/decrypt/${key}`, { ciphertext: again.string('data.ciphertext') }))
    expect(back.string('data.plaintext')).toBe(made.plaintext)
    const signer = await world.keyOf(world.settingsOf())
    const batch = await world.root.post(`transit/sign/${signer}`, { batch_input: [{ input: hello }, { input: '*' }] })
    expect(batch.status).toBe(200)
    expect(dataOf(batch).batch_results).toMatchObject([{ key_version: 1 }, { error: expect.any(String) }])
  })

  test('an operation that its mechanism lacks is refused, naming the mechanism', async () => {
    const ec = await world.keyOf(world.settingsOf())
    const aes = await world.keyOf(world.settingsOf({ key_label: 'aes', mechanism: '0x1087' }))
    const encrypted = await world.root.post(`transit/encrypt/${ec}`, { plaintext: hello })
    expect([encrypted.status, encrypted.text]).toEqual([
      400,
      expect.stringContaining('CKM_ECDSA, which does not encrypt'),
    ])
    const signed = await world.root.post(`transit/sign/${aes}`, { input: hello })
    expect([signed.status, signed.text]).toEqual([400, expect.stringContaining('CKM_AES_GCM, which does not sign')])
  })

  test('makes HMACs by a secret of each version, which no other key on the same object has', async () => {
    // A managed key of its own for each version, all of them on one object.
    const onObject = async () => ({ managed_key_name: await world.managed(world.settingsOf()) })
    const macs: string[] = []
    for (const key of [fresh('k'), fresh('k')]) {
      await done(world.root.post(`transit/keys/${key}`, { type: 'managed_key', ...(await onObject()) }))
      await done(world.root.post(`transit/keys/${key}/rotate`, await onObject()))
      for (const key_version of [1, 2]) {
        const asked = { input: hello, key_version }
        const hmac = (await done(world.root.post(`transit/hmac/${key}`, asked))).string('data.hmac')
        macs.push(hmac.slice(`vault:v${key_version}:`.length))
        const checked = await done(world.root.post(`transit/verify/${key}`, { input: hello, hmac }))
        expect(dataOf(checked)).toEqual({ valid: true })
      }
    }
    expect(new Set(macs).size).toBe(4)
  })
})
