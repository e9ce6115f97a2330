import { describe, expect, test } from 'vitest'
import type { Reply } from '../support/client.ts'
import { done, expectRefused, fresh, hello, useNode } from './node.ts'

const node = useNode()
const grant = (path: string, ...capabilities: string[]) =>
  `path "${path}" { capabilities = ${JSON.stringify(capabilities)} }\n`

/** 403 of a policy: the reference's text, and why. */
function expectDenied(reply: Reply, why: string): void {
  expectRefused(reply, 403, '1 error occurred:\n\t* permission denied\n\n', why)
}

describe('a request', () => {
  test.each([
    ['without a token', {}],
    ['with a token that nobody issued', { 'X-Vault-Token': 'hvs.nonsense' }],
    ['with an empty token', { 'X-Vault-Token': '' }],
    ['with a token in the wrong scheme', { Authorization: 'bearer x' }],
  ])('%s is 403 in plain words, whether or not the path exists', async (_, headers) => {
    for (const path of ['transit/keys/a', 'nomount/a', 'sys/mounts']) {
      expectRefused(await node.server.client('').call('GET', path, undefined, headers), 403, 'permission denied')
    }
  })

  test('may bring its token as Authorization: Bearer', async () => {
    const headers = { Authorization: `Bearer ${node.server.rootToken}` }
    expect((await node.server.client('').call('GET', 'sys/mounts', undefined, headers)).status).toBe(200)
  })

  test('of a token whose policy does not mention it is refused even without a mount', async () => {
    const client = await node.limited(grant('other/*', 'read'))
    for (const path of ['transit/keys/a', 'nomount/a']) {
      expectDenied(await client.get(path), `no policy of this token has a rule for path "${path}", which needs "read"`)
    }
  })
})

describe('a token limited by a policy', () => {
  test('uses a key without being able to read, list, rotate, configure or delete it', async () => {
    const name = await node.key()
    const client = await node.limited(
      grant(`transit/encrypt/${name}`, 'update') + grant(`transit/decrypt/${name}`, 'update'),
    )
    const sealed = await done(client.post(`transit/encrypt/${name}`, { plaintext: hello }))
    await done(client.post(`transit/decrypt/${name}`, { ciphertext: sealed.string('data.ciphertext') }))
    const refused = [
      client.get(`transit/keys/${name}`),
      client.list('transit/keys'),
      client.post(`transit/keys/${name}/rotate`),
      client.post(`transit/keys/${name}/config`, { deletion_allowed: true }),
      client.delete(`transit/keys/${name}`),
      client.post(`transit/hmac/${name}`, { input: hello }),
      client.post(`transit/encrypt/${await node.key()}`, { plaintext: hello }),
      client.get('sys/mounts'),
      client.post('sys/policies/acl/x', { policy: grant('*', 'sudo') }),
    ]
    for (const reply of await Promise.all(refused)) expect(reply.status, reply.text).toBe(403)
  })

  test('needs update, not create, to make a key', async () => {
    const [creator, updater] = [
      await node.limited(grant('transit/keys/*', 'create')),
      await node.limited(grant('transit/keys/*', 'update')),
    ]
    const why = 'applies to "transit/keys/new" and does not grant "update"'
    const reply = await creator.post('transit/keys/new')
    expect(reply.status).toBe(403)
    expect(reply.text).toContain(JSON.stringify(why).slice(1, -1))
    expect((await updater.post(`transit/keys/${fresh('k')}`)).status).toBe(200)
  })

  test('lists by a rule with or without the slash', async () => {
    await node.key()
    for (const path of ['transit/keys', 'transit/keys/', 'transit/*', 'transit/+']) {
      expect((await (await node.limited(grant(path, 'list'))).list('transit/keys')).status, path).toBe(200)
    }
    expect((await (await node.limited(grant('transit/keys/*', 'read'))).list('transit/keys')).status).toBe(403)
  })

  test('is denied by the more specific rule, and allowed by it', async () => {
    const [name, other] = [await node.key(), await node.key()]
    const client = await node.limited(grant('transit/*', 'read', 'update') + grant(`transit/+/${name}`, 'deny'))
    expect((await client.get(`transit/keys/${name}`)).status).toBe(403)
    expect((await client.post(`transit/hmac/${name}`, { input: hello })).status).toBe(403)
    expect((await client.get(`transit/keys/${other}`)).status).toBe(200)
    const allowed = await node.limited(grant('transit/*', 'deny') + grant(`transit/keys/${name}`, 'read'))
    expect((await allowed.get(`transit/keys/${name}`)).status).toBe(200)
    expect((await allowed.get(`transit/keys/${other}`)).status).toBe(403)
  })

  test('cannot get around a rule by the other spelling of a path or verb', async () => {
    const name = await node.key()
    const client = await node.limited(
      grant('transit/*', 'update') + grant(`transit/sign/${name}`, 'deny') + grant(`transit/sign/${name}/*`, 'deny'),
    )
    for (const path of [
      `sign/${name}`,
      `sign/${name}/sha2-256`,
      `sign/%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
    ]) {
      for (const verb of ['POST', 'PUT']) {
        expect((await client.call(verb, `transit/${path}`, { input: hello })).status, path).toBe(403)
      }
    }
    const bare = await fetch(`${node.server.url}/transit/keys/${name}`)
    expect(bare.status).toBe(403)
  })
})

describe('a token', () => {
  test('that was revoked is worth nothing, at once, and neither are its children', async () => {
    const policy = fresh('p')
    await done(
      node.root.post(`sys/policies/acl/${policy}`, {
        policy: grant('auth/token/*', 'update', 'read') + grant('transit/*', 'list'),
      }),
    )
    const token = (await done(node.root.post('auth/token/create', { policies: [policy] }))).string('auth.client_token')
    const parent = node.server.client(token)
    const child = node.server.client((await done(parent.post('auth/token/create'))).string('auth.client_token'))
    expect((await child.get('auth/token/lookup-self')).status).toBe(200)
    expect((await parent.post('auth/token/revoke-self')).status).toBe(204)
    for (const client of [parent, child]) {
      expectRefused(await client.get('auth/token/lookup-self'), 403, 'permission denied')
    }
  })

  test('is never in the log', () => {
    expect(node.server.output().replace(/root_token:.*/, '')).not.toContain(node.server.rootToken)
    expect(node.server.output()).not.toMatch(/server fault/)
  })
})
