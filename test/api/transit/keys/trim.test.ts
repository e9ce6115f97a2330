import { describe, expect, test } from 'vitest'
import { openSql } from '../../../attack/sql.ts'
import { done, expectRefused, hello, useNode } from '../../node.ts'

const node = useNode()
const config = (name: string, body: Record<string, unknown>) => node.root.post(`transit/keys/${name}/config`, body)
const trim = (name: string, min_available_version?: unknown) =>
  node.root.post(`transit/keys/${name}/trim`, min_available_version === undefined ? {} : { min_available_version })
const decrypt = (name: string, ciphertext = '') => node.root.post(`transit/decrypt/${name}`, { ciphertext })

/** A key with versions 1 to `versions`, and a ciphertext and an HMAC of each. */
async function rotated(versions: number, settings = {}): Promise<{ name: string; sealed: string[]; macs: string[] }> {
  const name = await node.key(settings)
  const [sealed, macs]: string[][] = [[], []]
  for (let version = 1; version <= versions; version++) {
    if (version > 1) await done(node.root.post(`transit/keys/${name}/rotate`))
    const made = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
    if (made.status === 200) sealed?.push(made.string('data.ciphertext'))
    macs?.push((await done(node.root.post(`transit/hmac/${name}`, { input: hello }))).string('data.hmac'))
  }
  return { name, sealed: sealed ?? [], macs: macs ?? [] }
}

describe('trimming a key', () => {
  test('answers the key object, and the versions below are gone for ever', async () => {
    const { name, sealed, macs } = await rotated(4)
    await done(config(name, { min_decryption_version: 3, min_encryption_version: 3 }))
    const reply = await trim(name, 3)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body).toMatchObject({
      data: { name, min_available_version: 3, min_decryption_version: 3, min_encryption_version: 3, latest_version: 4 },
    })
    for (const [index, text] of sealed.entries()) {
      const answer = await decrypt(name, text)
      if (index >= 2) expect(answer.string('data.plaintext')).toBe(hello)
      else expectRefused(answer, 400, 'ciphertext or signature version is disallowed by policy (too old)')
    }
    const old = await node.root.post(`transit/verify/${name}`, { input: hello, hmac: macs[0] })
    expectRefused(old, 400, 'cannot verify HMAC: version is too old (disallowed by policy)')
    const kept = await node.root.post(`transit/verify/${name}`, { input: hello, hmac: macs[2] })
    expect(kept.body).toMatchObject({ data: { valid: true } })
  })

  test('removes the wrapped material and the version rows from the database', async () => {
    const { name } = await rotated(4, { type: 'ecdsa-p256' })
    await done(config(name, { min_decryption_version: 3, min_encryption_version: 3 }))
    await using sql = await openSql(node.server.database.url)
    const [key] = await sql.rows(`SELECT id FROM transit_keys WHERE name = '${name}'`)
    const count = async (table: string, column: string) =>
      Number((await sql.rows(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column} = '${key?.id}'`))[0]?.n)
    expect([await count('materials', 'owner'), await count('transit_versions', 'key_id')]).toEqual([8, 4])
    await done(trim(name, 3))
    expect([await count('materials', 'owner'), await count('transit_versions', 'key_id')]).toEqual([4, 2])
    const left = await sql.rows(`SELECT MIN(version) AS low FROM materials WHERE owner = '${key?.id}'`)
    expect(Number(left[0]?.low)).toBe(3)
  })

  test('keeps the floor: minimum versions can be raised and never lowered below it', async () => {
    const { name } = await rotated(4)
    await done(config(name, { min_decryption_version: 3, min_encryption_version: 3 }))
    await done(trim(name, 3))
    const encryption = 'min encryption version should not be less than min available version'
    expectRefused(await config(name, { min_encryption_version: 0 }), 400, encryption)
    const decryption = 'min decryption version should not be less then min available version'
    expectRefused(await config(name, { min_decryption_version: 1 }), 400, decryption)
    expect((await config(name, { min_encryption_version: 4 })).status).toBe(200)
    expectRefused(await trim(name, 2), 400, 'minimum available version cannot be decremented')
    expect((await trim(name, 3)).body).toMatchObject({ data: { min_available_version: 3 } })
  })

  test.each([
    [undefined, {}, 'missing min_available_version'],
    [-1, {}, 'minimum available version cannot be decremented'],
    [
      2,
      { min_encryption_version: 0 },
      'minimum available version cannot be set when minimum encryption version is not set',
    ],
    [4, {}, 'minimum available version cannot be greater than minmum encryption version'],
    [3, {}, 'minimum available version cannot be greater than minimum decryption version'],
    [0, {}, 'minimum available version should be positive'],
  ])('to %s with %j is refused: %s', async (version, settings, text) => {
    const { name } = await rotated(4)
    await done(config(name, { min_decryption_version: 2, min_encryption_version: 3, ...settings }))
    expectRefused(await trim(name, version), 400, text)
    expect((await node.root.get(`transit/keys/${name}`)).body).toMatchObject({ data: { min_available_version: 0 } })
  })

  test('of a key that was never configured is refused, since its minimum encryption version is 0', async () => {
    const text = 'minimum available version cannot be set when minimum encryption version is not set'
    expectRefused(await trim((await rotated(2)).name, 1), 400, text)
  })

  test('with a value that is not a whole number is refused', async () => {
    const { name } = await rotated(1)
    for (const wrong of ['x', 1.5, {}, []]) {
      const reply = await trim(name, wrong)
      expect(reply.status, reply.text).toBe(400)
      expect(reply.text).toContain('min_available_version')
    }
  })

  test('of a key that does not exist is refused', async () => {
    expectRefused(await trim('nokey', 1), 400, 'invalid key name')
  })

  test('leaves a key that can be rotated, used and deleted', async () => {
    const { name } = await rotated(3)
    await done(config(name, { min_decryption_version: 3, min_encryption_version: 3, deletion_allowed: true }))
    await done(trim(name, 3))
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const made = await node.root.post(`transit/encrypt/${name}`, { plaintext: hello })
    expect((await decrypt(name, made.string('data.ciphertext'))).string('data.plaintext')).toBe(hello)
    expect((await node.root.delete(`transit/keys/${name}`)).status).toBe(204)
  })
})
