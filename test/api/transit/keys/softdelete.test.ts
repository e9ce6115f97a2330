import { describe, expect, test } from 'vitest'
import { done, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const put = (name: string) => node.root.delete(`transit/keys/${name}/soft-delete`)
const restore = (name: string) => node.root.post(`transit/keys/${name}/soft-delete-restore`)
const refusal = 'refusing to use soft-deleted key'

describe('a soft-deleted key', () => {
  test('answers the key object with soft_deleted, and other keys are not touched', async () => {
    const [name, other] = [await node.key(), await node.key()]
    const reply = await put(name)
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      data: { name, soft_deleted: true, keys: { 1: expect.any(Number) } },
      warnings: null,
    })
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { soft_deleted: true } })
    expect((await node.root.get(`transit/keys/${other}`)).body).toMatchObject({ data: { soft_deleted: false } })
  })

  test('encrypts, decrypts, rewraps, makes HMACs and data keys, verifies and rotates no more, and again once restored', async () => {
    const name = await node.key()
    const ciphertext = (await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })).string('data.ciphertext')
    const hmac = (await node.root.post(`transit/hmac/${name}`, { input: hello })).string('data.hmac')
    const uses = [
      ['encrypt', { plaintext: hello }],
      ['decrypt', { ciphertext }],
      ['rewrap', { ciphertext }],
      ['hmac', { input: hello }],
      ['verify', { input: hello, hmac }],
      ['datakey/wrapped', {}],
    ] as const
    await done(put(name))
    for (const [verb, body] of uses) expectRefused(await node.root.post(`transit/${verb}/${name}`, body), 400, refusal)
    expectRefused(await node.root.post(`transit/keys/${name}/rotate`), 400, refusal)
    const restored = await restore(name)
    expect(restored.status).toBe(200)
    expect(restored.body).toMatchObject({ data: { soft_deleted: false }, warnings: null })
    for (const [verb, body] of uses) await done(node.root.post(`transit/${verb}/${name}`, body))
    await done(node.root.post(`transit/keys/${name}/rotate`))
  })

  test('signs and verifies no more, and again once restored', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    const signature = (await node.root.post(`transit/sign/${name}`, { input: hello })).string('data.signature')
    await done(put(name))
    expectRefused(await node.root.post(`transit/sign/${name}`, { input: hello }), 400, refusal)
    expectRefused(await node.root.post(`transit/verify/${name}`, { input: hello, signature }), 400, refusal)
    await done(restore(name))
    const verified = await node.root.post(`transit/verify/${name}`, { input: hello, signature })
    expect(verified.body).toMatchObject({ data: { valid: true } })
  })

  test('fails every item of a batch', async () => {
    const name = await node.key()
    await done(put(name))
    const reply = await node.root.post(`transit/encrypt/${name}`, { batch_input: [{ plaintext: hello }] })
    expectRefused(reply, 400, refusal)
  })

  test('is listed, is not replaced by create or encrypt, and can be deleted', async () => {
    const name = await node.key()
    await done(put(name))
    const made = await node.root.post(`transit/keys/${name}`)
    expect(made.body).toMatchObject({ data: { soft_deleted: true } })
    expect((await node.root.list('transit/keys')).text).toContain(name)
    await done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))
    expect((await node.root.delete(`transit/keys/${name}`)).status).toBe(204)
  })

  test('put away or restored twice is a warning', async () => {
    const name = await node.key()
    expect((await restore(name)).body).toMatchObject({ warnings: ['key was already restored'] })
    await done(put(name))
    const again = await put(name)
    expect(again.status).toBe(200)
    expect(again.body).toMatchObject({ warnings: ['key was already marked as soft deleted'] })
  })

  test('needs no deletion_allowed, and there must be one', async () => {
    const name = fresh('k')
    const missing = `no existing key named ${name} could be found`
    expectRefused(await put(name), 400, missing)
    expectRefused(await restore(name), 400, missing)
  })
})
