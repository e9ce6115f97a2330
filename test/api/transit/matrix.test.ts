import { beforeAll, describe, expect, test } from 'vitest'
import { algorithms } from '../../../src/keys/algorithms.ts'
import type { Reply } from '../../support/client.ts'
import { done, hello, useSharedNode } from '../node.ts'

const node = useSharedNode()
const names = new Map<string, string>()
const rows = [...algorithms.values()]

beforeAll(async () => {
  for (const { name: type } of rows) names.set(type, await node.key({ type }))
}, 60_000)

/** The abilities of this machine's token are not known here: a request works, or its refusal says why not. */
function worksOrSaysWhy(reply: Reply, able: boolean, why: RegExp): void {
  if (reply.status === 200) {
    expect(able, reply.text).toBe(true)
    return
  }
  expect(reply.status, reply.text).toBe(400)
  expect((reply.body as { errors: string[] }).errors).toEqual([expect.stringMatching(why)])
}

describe.each(rows.map((row) => [row.name, row] as const))('a key of type %s', (type, { abilities, kind }) => {
  const post = (verb: string, body: Record<string, unknown>) =>
    node.root.post(`transit/${verb}/${names.get(type)}`, body)

  test('encrypts and decrypts, or is refused as unable to', async () => {
    const sealed = await post('encrypt', { plaintext: hello })
    worksOrSaysWhy(sealed, abilities.encrypt, /^message encryption not supported for key type /)
    const ciphertext = sealed.status === 200 ? sealed.string('data.ciphertext') : 'vault:v1:AAAA'
    const rewrapped = await post('rewrap', { ciphertext })
    worksOrSaysWhy(rewrapped, abilities.encrypt, /^message decryption not supported for key type /)
    const again = rewrapped.status === 200 ? [rewrapped.string('data.ciphertext')] : []
    for (const one of [ciphertext, ...again]) {
      const opened = await post('decrypt', { ciphertext: one })
      worksOrSaysWhy(opened, abilities.encrypt, /^message decryption not supported for key type /)
      if (sealed.status === 200) expect(opened.body).toMatchObject({ data: { plaintext: hello } })
    }
    if (kind === 'aead') expect(sealed.status).toBe(200)
  })

  const schemes = ['pss', 'pkcs1v15'].flatMap((signature_algorithm) =>
    ['asn1', 'jws'].map((marshaling_algorithm) => ({ signature_algorithm, marshaling_algorithm })),
  )
  test.each(schemes)('signs and verifies, or says that it does not: %j', async (scheme) => {
    for (const hash_algorithm of ['sha1', 'sha2-256', 'sha2-512', 'sha3-384']) {
      const signed = await post('sign', { ...scheme, hash_algorithm, input: hello })
      worksOrSaysWhy(signed, abilities.sign, /^key type .* does not support signing$/)
      expect(signed.status === 200).toBe(abilities.sign)
      const signature = signed.status === 200 ? signed.string('data.signature') : 'vault:v1:AAAA'
      const verified = await post('verify', { ...scheme, hash_algorithm, input: hello, signature })
      worksOrSaysWhy(verified, abilities.sign, /^key type .* does not support verification$/)
      if (abilities.sign) expect(verified.body).toMatchObject({ data: { valid: true } })
    }
  })

  test('makes HMACs and verifies them', async () => {
    for (const algorithm of ['sha2-256', 'sha2-512', 'sha3-512']) {
      const hmac = (await done(post('hmac', { input: hello, algorithm }))).string('data.hmac')
      expect((await post('verify', { input: hello, algorithm, hmac })).body).toMatchObject({ data: { valid: true } })
    }
  })

  test('is read, rotated, configured and deleted', async () => {
    const name = await node.key({ type })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const settings = { min_decryption_version: 2, min_encryption_version: 2, deletion_allowed: true }
    await done(node.root.post(`transit/keys/${name}/config`, settings))
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { type, latest_version: 2, ...settings },
    })
    expect((await node.root.delete(`transit/keys/${name}`)).status).toBe(204)
  })
})
