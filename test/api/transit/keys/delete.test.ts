import { describe, expect, test } from 'vitest'
import { openSql } from '../../../attack/sql.ts'
import { done, expectRefused, fresh, hello, useNode } from '../../node.ts'

const node = useNode()
const remove = (name: string) => node.root.delete(`transit/keys/${name}`)
const allow = (name: string) => done(node.root.post(`transit/keys/${name}/config`, { deletion_allowed: true }))

describe('deleting a key', () => {
  test('is refused until deletion is allowed', async () => {
    const name = await node.key()
    expectRefused(await remove(name), 400, `error deleting policy ${name}: deletion is not allowed for this key`)
    expect((await node.root.get(`transit/keys/${name}`)).status).toBe(200)
  })

  test('answers 204 without a body, and its ciphertexts are lost', async () => {
    const name = await node.key()
    const sealed = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
    const ciphertext = sealed.string('data.ciphertext')
    await allow(name)
    const reply = await remove(name)
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    expectRefused(await node.root.get(`transit/keys/${name}`), 404)
    const missing = 'encryption key not found'
    expectRefused(await node.root.post(`transit/decrypt/${name}`, { ciphertext }), 400, missing)
    expectRefused(await node.root.post(`transit/hmac/${name}`, { input: hello }), 400, missing)
    await done(node.root.post(`transit/keys/${name}`))
    const text = 'cipher: message authentication failed'
    expectRefused(await node.root.post(`transit/decrypt/${name}`, { ciphertext }), 400, text)
  })

  test('of a key with many versions takes them all', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    for (let i = 0; i < 5; i++) await done(node.root.post(`transit/keys/${name}/rotate`))
    await allow(name)
    await using sql = await openSql(node.server.database.url)
    const { id = null } = await sql.row('SELECT id FROM transit_keys WHERE name = ?', [name])
    const rows = async () =>
      (
        await sql.row(
          'SELECT (SELECT COUNT(*) FROM materials WHERE owner = ?) + (SELECT COUNT(*) FROM transit_versions WHERE key_id = ?) AS n',
          [id, id],
        )
      ).n
    expect(Number(await rows())).toBe(18)
    await done(remove(name))
    expect(Number(await rows())).toBe(0)
    await done(node.root.post(`transit/keys/${name}`, { type: 'ed25519' }))
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({
      data: { type: 'ed25519', latest_version: 1, deletion_allowed: false },
    })
  })

  test('of a key that does not exist is refused', async () => {
    const name = fresh('k')
    expectRefused(await remove(name), 400, `error deleting policy ${name}: could not delete key; not found`)
  })

  test('while others use it gives them an answer or a refusal, never a fault', async () => {
    for (let round = 0; round < 30; round++) {
      const name = await node.key()
      await allow(name)
      const uses = Array.from({ length: 10 }, (_, index) =>
        index % 2 ? node.root.get(`transit/keys/${name}`) : node.root.post(`transit/hmac/${name}`, { input: hello }),
      )
      const [removed, ...replies] = await Promise.all([remove(name), ...uses])
      expect(removed?.status).toBe(204)
      for (const { status, text } of replies) expect([200, 400, 404], text).toContain(status)
    }
  })
})
