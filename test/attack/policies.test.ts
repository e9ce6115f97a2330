import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../support/client.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { clientWith, expectServed } from './nodes.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
  for (const key of ['a', 'b', 'A', 'team.a', 'prod']) {
    expectServed(await server.client().post(`transit/keys/${key}`, { type: 'hmac', key_size: 32 }))
  }
}, 120_000)
afterAll(() => server?.[Symbol.asyncDispose]())

let made = 0
/** A token that has this policy alone. */
async function tokenHolding(policy: string): Promise<string> {
  const root = server.client()
  const name = `p${made++}`
  expectServed(await root.post(`sys/policies/acl/${name}`, { policy }))
  const reply = await root.post('auth/token/create', { policies: [name], no_default_policy: true })
  return expectServed(reply).string('auth.client_token')
}
const holding = async (policy: string): Promise<Client> => server.client(await tokenHolding(policy))

/** The status of a GET whose target is sent as it is, by no client that would tidy it up. */
function rawStatus(token: string, target: string): Promise<number> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path: target, headers: { 'X-Vault-Token': token }, agent: false })
    sent.on('error', reject)
    sent.on('response', (response) => response.resume().on('end', () => resolve(response.statusCode ?? 0)))
    sent.end()
  })
}
const allow = (path: string, ...words: string[]) =>
  `path ${JSON.stringify(path)} { capabilities = ${JSON.stringify(words)} }\n`
const status = async (client: Client, verb: string, path: string, body?: unknown) =>
  (await client.call(verb, path, body)).status

describe('a rule is matched by the path that is meant, to the letter', () => {
  /**
   * Statuses for other spellings of the one key that a token may read: 403 if they mean something else, 400 if nothing.
   */
  test.each<[string, number]>([
    ['transit/keys/a', 200],
    ['transit/keys/%61', 200],
    ['transit/k%65ys/a', 200],
    ['transit/keys/A', 403],
    ['transit/KEYS/a', 403],
    ['Transit/keys/a', 403],
    ['transit/keys/b', 403],
    ['transit/keys/team.a', 403],
    ['transit/keys/a/', 200],
    ['transit/keys/a%20', 403],
    ['transit/keys/a*', 403],
    ['transit/keys/+', 403],
    ['transit/keys/a%2500', 403],
    ['transit//keys/a', 400],
    ['/transit/keys/a', 400],
    ['transit/keys//a', 400],
    ['transit/keys/a//', 400],
    ['transit%2Fkeys/a', 400],
    ['transit/keys%2fa', 400],
    ['transit/keys/./a', 400],
    ['transit/keys/b/../a', 400],
    ['transit/keys/%2e/a', 400],
    ['transit/keys/b/%2E%2e/a', 400],
    ['../v1/transit/keys/a', 400],
    ['transit/keys/a%00', 400],
    ['transit/keys/a%0a', 400],
    ['transit/keys/a%ff', 400],
    ['transit/keys/a%E2%80%8B', 400],
    ['v1/transit/keys/a', 403],
    ['transit/keys/a?list=false', 200],
    ['transit/keys/a;x=1', 403],
  ])('%s is %i', async (path, expected) => {
    const token = await tokenHolding(allow('transit/keys/a', 'read'))
    expect(await rawStatus(token, `/v1/${path}`)).toBe(expected)
  })

  /** 404 only where the spelling means another key, which the token may ask for and which is not there. */
  test.each<[string, number]>([
    ['transit/keys/prod', 403],
    ['transit/keys/pro%64', 403],
    ['transit/keys/prod/', 403],
    ['transit/keys/prod?list=false', 403],
    ['transit//keys/prod', 400],
    ['transit/keys//prod', 400],
    ['transit/keys/prod//', 400],
    ['transit/keys/./prod', 400],
    ['transit/x/../keys/prod', 400],
    ['transit/keys/%2e%2e/keys/prod', 400],
    ['transit/keys%2fprod', 400],
    ['transit/keys/prod%2f', 400],
    ['transit/keys/prod%00', 400],
    ['transit/keys/prod%20', 404],
    ['transit/keys/PROD', 404],
  ])('a denied key is not reached as %s: %i', async (path, expected) => {
    const token = await tokenHolding(allow('transit/*', 'read', 'update') + allow('transit/+/prod', 'deny'))
    for (const prefix of ['/v1/', '/']) expect(await rawStatus(token, `${prefix}${path}`)).toBe(expected)
    expect(await rawStatus(token, '/v1/transit/keys/a')).toBe(200)
  })

  test('the absolute form of a request is the same path', async () => {
    const token = await tokenHolding(allow('transit/*', 'read') + allow('transit/keys/prod', 'deny'))
    expect(await rawStatus(token, 'http://elsewhere/v1/transit/keys/prod')).toBe(403)
    expect(await rawStatus(token, 'http://elsewhere/v1/transit/keys/a')).toBe(200)
  })
})

describe('the most specific rule decides, and only that', () => {
  const verdicts = async (policy: string, paths: readonly string[]) => {
    const client = await holding(policy)
    const found = []
    for (const path of paths) found.push([403, 200].indexOf(await status(client, 'GET', path)))
    return found
  }
  const paths = ['transit/keys/a', 'transit/keys/b', 'transit/keys/prod', 'transit/keys/team.a']

  test.each<[string, string, number[]]>([
    ['a glob', allow('transit/keys/*', 'read'), [1, 1, 1, 1]],
    ['a glob within a segment', allow('transit/keys/te*', 'read'), [0, 0, 0, 1]],
    ['a glob over several segments', allow('tr*', 'read'), [1, 1, 1, 1]],
    ['everything', allow('*', 'read'), [1, 1, 1, 1]],
    ['a star that does not end the text', allow('transit/*/a', 'read'), [0, 0, 0, 0]],
    ['a plus for a segment', allow('transit/+/a', 'read'), [1, 0, 0, 0]],
    ['a plus at the start', allow('+/keys/b', 'read'), [0, 1, 0, 0]],
    ['several pluses', allow('+/+/+', 'read'), [1, 1, 1, 1]],
    ['too few pluses', allow('+/+', 'read'), [0, 0, 0, 0]],
    ['a plus within a segment is a plus', allow('transit/keys/+a', 'read'), [0, 0, 0, 0]],
    ['a plus and a glob', allow('transit/+/pr*', 'read'), [0, 0, 1, 0]],
    ['a leading slash', allow('/transit/keys/a', 'read'), [1, 0, 0, 0]],
    ['another case', allow('TRANSIT/keys/*', 'read'), [0, 0, 0, 0]],
    ['a trailing slash', allow('transit/keys/a/', 'read'), [0, 0, 0, 0]],
    ['a dot is a dot', allow('transit/keys/team+a', 'read') + allow('transit/keys/team.a', 'read'), [0, 0, 0, 1]],
    ['exact deny under a glob', allow('transit/*', 'read') + allow('transit/keys/a', 'deny'), [0, 1, 1, 1]],
    ['exact grant over a denying glob', allow('transit/*', 'deny') + allow('transit/keys/a', 'read'), [1, 0, 0, 0]],
    ['longer glob over a shorter', allow('transit/*', 'deny') + allow('transit/keys/t*', 'read'), [0, 0, 0, 1]],
    ['a plus under a longer glob', allow('transit/+/a', 'deny') + allow('transit/keys/*', 'read'), [1, 1, 1, 1]],
    ['a plus over a shorter glob', allow('transit/+/a', 'deny') + allow('tran*', 'read'), [0, 1, 1, 1]],
    ['a plus over a glob of the same start', allow('transit/+/a', 'read') + allow('transit/*', 'deny'), [1, 0, 0, 0]],
    ['deny in the list', allow('transit/keys/*', 'read', 'deny'), [0, 0, 0, 0]],
    ['deny said a second time', allow('transit/keys/a', 'read') + allow('transit/keys/a', 'deny'), [0, 0, 0, 0]],
    ['no capability', allow('transit/*', 'read') + allow('transit/keys/a'), [0, 1, 1, 1]],
    [
      'other capabilities',
      allow('transit/keys/*', 'update', 'create', 'delete', 'list', 'patch', 'sudo'),
      [0, 0, 0, 0],
    ],
  ])('%s', async (_, policy, expected) => {
    expect(await verdicts(policy, paths)).toEqual(expected)
  })

  test('a deny in one policy of a token overrides the grant of another', async () => {
    const root = server.client()
    expectServed(await root.post('sys/policies/acl/one', { policy: allow('transit/keys/a', 'read') }))
    expectServed(await root.post('sys/policies/acl/two', { policy: allow('transit/keys/a', 'deny') }))
    for (const policies of [
      ['one', 'two'],
      ['two', 'one'],
    ])
      expect(await status(await clientWith(server, policies), 'GET', 'transit/keys/a')).toBe(403)
    expect(await status(await clientWith(server, ['one']), 'GET', 'transit/keys/a')).toBe(200)
  })
})

describe('each verb needs its own capability, and the refusal names it', () => {
  test.each<[string, string, string]>([
    ['GET', 'transit/keys/a', 'read'],
    ['LIST', 'transit/keys', 'list'],
    ['POST', 'transit/keys/a/rotate', 'update'],
    ['PUT', 'transit/keys/a/rotate', 'update'],
    ['POST', 'transit/encrypt/none', 'create'],
    ['DELETE', 'transit/keys/none', 'delete'],
    ['PATCH', 'transit/keys/a', 'patch'],
    ['HEAD', 'transit/keys/a', 'read'],
  ])('%s %s needs %s', async (verb, path, needed) => {
    const all = ['create', 'read', 'update', 'patch', 'delete', 'list', 'sudo']
    const without = await holding(allow('*', ...all.filter((word) => word !== needed)))
    const reply = await without.call(verb, path, ['POST', 'PUT', 'PATCH'].includes(verb) ? {} : undefined)
    expect(reply.status).toBe(403)
    if (verb !== 'HEAD') {
      const [text, why] = (reply.body as { errors: string[] }).errors
      expect(text).toBe('1 error occurred:\n\t* permission denied\n\n')
      expect(why).toContain(`does not grant "${needed}"`)
    }
    const only = await holding(allow('*', needed))
    expect(await status(only, verb, path, verb === 'PATCH' ? {} : undefined)).not.toBe(403)
  })

  test('a query or a header that names another verb changes nothing', async () => {
    const client = await holding(allow('transit/keys/*', 'read'))
    expect(await status(client, 'GET', 'transit/keys?list=true')).toBe(403)
    const headers = { 'X-HTTP-Method-Override': 'GET', 'X-Http-Method': 'GET' }
    expect((await client.call('POST', 'transit/keys/b/rotate', {}, headers)).status).toBe(403)
    expect((await client.call('DELETE', 'transit/keys/b', undefined, headers)).status).toBe(403)
  })
})

describe('root-protected paths', () => {
  const everything = ['create', 'read', 'update', 'patch', 'delete', 'list']
  test.each<[string, string]>([
    ['PUT', 'sys/seal'],
    ['LIST', 'auth/token/accessors'],
    ['POST', 'auth/token/revoke-orphan'],
    ['POST', 'sys/remount'],
    ['GET', 'sys/audit'],
    ['PUT', 'sys/audit/file'],
    ['DELETE', 'sys/audit/file'],
    ['GET', 'sys/auth/token'],
    ['POST', 'sys/auth/other'],
    ['DELETE', 'sys/auth/other'],
    ['GET', 'sys/auth/token/tune'],
    ['POST', 'sys/auth/token/tune'],
    ['LIST', 'sys/leases/lookup'],
    ['LIST', 'sys/leases/lookup/auth/token/create'],
    ['POST', 'sys/leases/revoke-prefix/nothing'],
    ['POST', 'sys/leases/revoke-force/nothing'],
    ['POST', 'sys/revoke-prefix/nothing'],
    ['POST', 'sys/revoke-force/nothing'],
  ])('%s %s takes sudo besides', async (verb, path) => {
    const client = await holding(allow('*', ...everything))
    const reply = await client.call(verb, path, verb === 'POST' || verb === 'PUT' ? {} : undefined)
    expect(reply.status, reply.text).toBe(403)
    expect((reply.body as { errors: string[] }).errors[1]).toContain('does not grant "sudo"')
  })
})
