import { beforeAll, describe, expect, test } from 'vitest'
import { hello, useNode } from '../api/node.ts'
import type { Client } from '../support/client.ts'

/** Policies are checked before anybody learns what exists: a caller without rights sees no difference. */

const node = useNode()
let stranger: Client
let nobody: Client
let guesser: Client
beforeAll(async () => {
  for (const name of ['there', 'deletable']) await node.root.post(`transit/keys/${name}`)
  await node.root.post('transit/keys/deletable/config', { deletion_allowed: true })
  await node.root.post('sys/policies/acl/there', { policy: 'path "a" {}' })
  stranger = await node.limited('path "nothing/of/interest" { capabilities = ["read"] }')
  nobody = node.server.client('')
  guesser = node.server.client('hvs.guess')
})

/** A path that exists, and one like it that does not. */
const pairs: [string, string][] = [
  ['transit/keys/there', 'transit/keys/absent'],
  ['transit/keys/deletable', 'transit/keys/absent'],
  ['transit/encrypt/there', 'transit/encrypt/absent'],
  ['transit/encrypt/there', 'nomount/encrypt/there'],
  ['transit/decrypt/there', 'transit/decrypt/absent'],
  ['transit/sign/there/sha2-256', 'transit/sign/absent/sha2-256'],
  ['transit/keys/there/rotate', 'transit/keys/absent/rotate'],
  ['transit/keys/there', 'transit/unheard-of/there'],
  ['transit/keys', 'nomount/keys'],
  ['transit', 'nomount'],
  ['pki/roles/there', 'nomount/roles/there'],
  ['sys/mounts/transit', 'sys/mounts/absent'],
  ['sys/mounts/transit/tune', 'sys/mounts/absent/tune'],
  ['sys/policies/acl/there', 'sys/policies/acl/absent'],
  ['sys/policy/there', 'sys/policy/absent'],
  ['sys/metrics', 'sys/unheard-of'],
  ['auth/token/lookup', 'auth/token/unheard-of'],
  ['auth/token/lookup', 'auth/unheard-of/lookup'],
]
const verbs = ['GET', 'HEAD', 'LIST', 'POST', 'PUT', 'PATCH', 'DELETE']
const bodies: Readonly<Record<string, unknown>> = { POST: { plaintext: hello }, PUT: {}, PATCH: {} }

/** The whole answer to a caller, without the path that was asked for. */
async function told(client: Client, verb: string, path: string): Promise<unknown> {
  const { status, headers, text } = await client.call(verb, path, bodies[verb])
  const { date: _, 'content-length': __, ...rest } = headers
  return { status, rest, text: text.replaceAll(path, 'PATH') }
}

describe.each(verbs)('%s', (verb) => {
  test.each(pairs)('%s is to a stranger as %s', async (there, absent) => {
    for (const client of [stranger, nobody, guesser]) {
      const found = await told(client, verb, there)
      expect(found).toMatchObject({ status: 403 })
      expect(await told(client, verb, absent)).toEqual(found)
    }
  })
})

test('nor does a right to read, to list or to delete tell who may not write whether a write would create', async () => {
  for (const word of ['read', 'list', 'delete', 'patch', 'sudo', 'deny']) {
    const client = await node.limited(`path "*" { capabilities = ["${word}"] }`)
    const found = await told(client, 'POST', 'transit/encrypt/there')
    expect(found).toMatchObject({ status: 403 })
    expect(await told(client, 'POST', 'transit/encrypt/absent')).toEqual(found)
  }
})

test('who may write one way is told which other way is missing', async () => {
  const updates = await node.limited('path "transit/encrypt/*" { capabilities = ["update"] }')
  const creates = await node.limited('path "transit/encrypt/*" { capabilities = ["create"] }')
  const encrypt = (client: Client, key: string) => client.post(`transit/encrypt/${key}`, { plaintext: hello })
  expect((await encrypt(updates, 'absent')).text).toContain('does not grant \\"create\\"')
  expect((await encrypt(creates, 'there')).text).toContain('does not grant \\"update\\"')
  expect((await encrypt(updates, 'there')).status).toBe(200)
  expect((await encrypt(creates, 'made-by-use')).status).toBe(200)
})

test('whoever may ask a path by one method without a token hears that it has no other', async () => {
  for (const [verb, path] of [
    ['POST', 'sys/health'],
    ['DELETE', 'sys/health'],
    ['LIST', 'sys/health'],
    ['PUT', 'sys/seal-status'],
    ['POST', 'sys/leader'],
    ['DELETE', 'sys/init'],
    ['GET', 'sys/unseal'],
    ['POST', 'sys/internal/ui/mounts'],
    ['DELETE', 'sys/internal/specs/openapi'],
  ] as const) {
    for (const client of [stranger, nobody, guesser, node.root]) {
      const { status, text } = await client.call(verb, path, verb === 'POST' ? {} : undefined)
      expect([status, text], `${verb} ${path}`).toEqual([405, '{"errors":["unsupported operation"]}\n'])
    }
  }
})
