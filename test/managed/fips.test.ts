import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { done, expectData, expectRefused, hello } from '../api/node.ts'
import type { Reply } from '../support/client.ts'
import { makeEc } from './tool.ts'
import { useWorld } from './world.ts'

/** Managed keys that were there before an operator turned FIPS mode on. */
const world = useWorld()
let ec: string
let ed25519: string
let sha1Signature: string

beforeAll(async () => {
  await makeEc(world.foreign, 'ed', '0c', 'edwards25519')
  ec = await world.keyOf(world.settingsOf())
  ed25519 = await world.keyOf(world.elsewhere({ key_label: 'ed', mechanism: '0x1057' }))
  const signed = await done(world.root.post(`transit/sign/${ec}`, { input: hello, hash_algorithm: 'sha1' }))
  sha1Signature = signed.string('data.signature')
  const { server } = world
  const config = JSON.parse(readFileSync(server.configFile, 'utf8'))
  await server.stop()
  writeFileSync(server.configFile, JSON.stringify({ ...config, fips: true }))
  await server.start()
}, 120_000)

const post = (verb: string, key: string, body: Record<string, unknown>) =>
  world.root.post(`transit/${verb}/${key}`, { input: hello, ...body })
const warnings = (reply: Reply): unknown => (reply.body as { warnings: unknown }).warnings
const warning = (what: string): string[] => [`FIPS mode: ${what} is not approved`]

describe('FIPS mode, with a managed key', () => {
  test('signs over SHA-3 and verifies that, and warns', async () => {
    for (const batch of [false, true]) {
      const item = { input: hello, hash_algorithm: 'sha3-256' }
      const signed = await done(post('sign', ec, batch ? { batch_input: [item, item] } : item))
      expect(warnings(signed)).toEqual(warning('sha3-256'))
    }
    const signed = await done(post('sign', ec, { hash_algorithm: 'sha3-256' }))
    const verified = { hash_algorithm: 'sha3-256', signature: signed.string('data.signature') }
    expectData(await post('verify', ec, verified), { valid: true }, warning('sha3-256'))
  })

  test('signs no SHA-1, and verifies one with a warning', async () => {
    const sha1 = { hash_algorithm: 'sha1' }
    expectRefused(await post('sign', ec, sha1), 400, 'FIPS mode: sha1 signatures are not approved')
    expectData(await post('verify', ec, { ...sha1, signature: sha1Signature }), { valid: true }, warning('sha1'))
  })

  test('signs and verifies by Ed25519, and warns of the key alone', async () => {
    const signed = await done(post('sign', ed25519, { hash_algorithm: 'sha3-256' }))
    expect(warnings(signed)).toEqual(warning('ed25519'))
    const signature = signed.string('data.signature')
    expectData(await post('verify', ed25519, { signature }), { valid: true }, warning('ed25519'))
  })

  test('does not warn of approved use', async () => {
    const signed = await done(post('sign', ec, { hash_algorithm: 'sha2-384' }))
    expect(warnings(signed)).toBeNull()
    const approved = { hash_algorithm: 'sha2-384', signature: signed.string('data.signature') }
    expectData(await post('verify', ec, approved), { valid: true })
  })
})
