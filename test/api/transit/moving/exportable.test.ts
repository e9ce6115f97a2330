import { describe, expect, test } from 'vitest'
import { done, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const config = (name: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${name}/config`, body)

interface Part {
  readonly exportable: boolean
  readonly hmac?: Part
}
/** Of each version and each of its HMAC secrets, whether it may leave. */
async function partsOf(name: string): Promise<readonly boolean[]> {
  const { body } = await node.root.get(`transit/keys/${name}`)
  const { custody } = (body as { data: { custody: Record<string, Part> } }).data
  return Object.values(custody).flatMap(({ exportable, hmac }) => [exportable, ...(hmac ? [hmac.exportable] : [])])
}

describe('a key that is made exportable', () => {
  test.each(['aes256-gcm96', 'chacha20-poly1305'])('decrypts what it encrypted before: %s', async (type) => {
    const name = await node.key({ type })
    const old = (await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })).string('data.ciphertext')
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const reply = await config(name, { exportable: true })
    expect(reply.body).toMatchObject({ data: { exportable: true, latest_version: 2 } })
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: old })
    expect(opened.string('data.plaintext')).toBe(hello)
    expect(await partsOf(name)).toEqual([true, true, true, true])
  })

  test.each(['ecdsa-p256', 'ed25519', 'rsa-2048'])('has the signatures and HMACs it had: %s', async (type) => {
    const name = await node.key({ type })
    const signature = (await node.root.post(`transit/sign/${name}`, { input: hello })).string('data.signature')
    const hmac = (await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')
    await done(config(name, { exportable: true }))
    const again = await done(node.root.post(`transit/sign/${name}`, { input: hello }))
    for (const given of [{ signature }, { hmac }, { signature: again.string('data.signature') }]) {
      const verified = await node.root.post(`transit/verify/${name}`, { input: hello, ...given })
      expect(verified.body, JSON.stringify(given)).toMatchObject({ data: { valid: true } })
    }
    expect((await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')).toBe(hmac)
  })

  test('stays so, and so do the versions that follow', async () => {
    const name = await node.key()
    await done(config(name, { exportable: true }))
    expect((await config(name, { exportable: false })).body).toMatchObject({ data: { exportable: true } })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    expect(await partsOf(name)).toEqual([true, true, true, true])
  })

  test('while others rotate it has no version that may not leave', async () => {
    const name = await node.key()
    const rotations = Array.from({ length: 4 }, () => node.root.post(`transit/keys/${name}/rotate`))
    const replies = await Promise.all([config(name, { exportable: true }), ...rotations])
    expect(replies.map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect(await partsOf(name)).toEqual(Array(10).fill(true))
  })

  test('together with a wrong setting stays unchanged', async () => {
    const name = await node.key()
    expect((await config(name, { exportable: true, min_decryption_version: 5 })).status).toBe(400)
    expect(await partsOf(name)).toEqual([false, false])
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { exportable: false } })
  })
})
