import { beforeAll, describe, expect, test } from 'vitest'
import type { Client, Reply } from '../../support/client.ts'
import { done, enveloped, expectData, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode()
const policy = `
path "transit/keys/*" { capabilities = ["read", "update", "sudo", "list", "patch", "create", "delete"] }
path "transit/keys/no" { capabilities = ["deny"] }
path "transit/sign/+" {
  capabilities = ["update"]
  allowed_parameters = { "input" = [], "hash_algorithm" = ["sha2-*"] }
  denied_parameters = { "prehashed" = [true] }
  required_parameters = ["Input"]
}
path "transit/none" { }
path "transit/wrapped/*" { capabilities = ["read"] min_wrapping_ttl = 60 max_wrapping_ttl = "1h" }
`
const all = ['create', 'delete', 'list', 'patch', 'read', 'sudo', 'update']
let token: string
let accessor: string
let client: Client
beforeAll(async () => {
  const name = fresh('p')
  await done(node.root.post(`sys/policies/acl/${name}`, { policy }))
  const made = await done(node.root.post('auth/token/create', { policies: [name] }))
  token = made.string('auth.client_token')
  accessor = made.string('auth.accessor')
  client = node.server.client(token)
})
const injected = (reply: Reply, data: Record<string, unknown>): void => {
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body).toEqual({ ...(enveloped(data) as object), ...data })
}

describe('sys/capabilities-self, -accessor and sys/capabilities', () => {
  const asking = [
    ['-self', () => client, () => ({})],
    ['', () => node.root, () => ({ token })],
    ['-accessor', () => node.root, () => ({ accessor })],
  ] as const

  test.each(asking)('sys/capabilities%s answers each path, and one path also as capabilities', async (end, by, who) => {
    const ask = (body: object) => by().post(`sys/capabilities${end}`, { ...who(), ...body })
    for (const body of [{ paths: ['transit/keys/a'] }, { path: 'transit/keys/a' }, { path: ['transit/keys/a'] }])
      injected(await ask(body), { 'transit/keys/a': all, capabilities: all })
    injected(
      await ask({ paths: ['transit/keys/no', 'transit/sign/k', '/transit/sign/k', 'elsewhere', 'transit/none'] }),
      {
        'transit/keys/no': ['deny'],
        'transit/sign/k': ['update'],
        '/transit/sign/k': ['update'],
        elsewhere: ['deny'],
        'transit/none': ['deny'],
      },
    )
    injected(await ask({ paths: 'transit/sign/k,transit/keys/' }), {
      'transit/sign/k': ['update'],
      'transit/keys/': all,
    })
  })

  test('a list that is asked for without its mount is answered as a request for it is decided', async () => {
    const paths = ['certs/revoked', 'certs/unified-revoked']
    for (const [rule, words] of [
      ['pki/certs/*', ['list']],
      ['certs/*', ['deny']],
    ] as const) {
      const own = await node.limited(
        `path "${rule}" { capabilities = ["list"] } path "sys/capabilities-self" { capabilities = ["update"] }`,
      )
      const { body } = await own.post('sys/capabilities-self', { paths })
      expect(body).toMatchObject({ data: Object.fromEntries(paths.map((path) => [path, words])) })
      for (const path of paths) expect((await own.list(path)).status === 403, path).toBe(words[0] === 'deny')
    }
  })

  test.each(asking)('sys/capabilities%s wants paths', async (end, by, who) => {
    const ask = (body: object) => by().post(`sys/capabilities${end}`, { ...who(), ...body })
    for (const body of [{}, { paths: [] }, { path: '' }, { paths: null }])
      expectRefused(await ask(body), 400, 'paths must be supplied')
    const many = Array.from({ length: 10_001 }, (_, n) => `p/${n}`)
    expect((await ask({ paths: many })).status).toBe(400)
    expect((await ask({ paths: many.slice(1) })).status).toBe(200)
  })

  test('root may do everything, and is told so in one word', async () => {
    injected(await node.root.post('sys/capabilities-self', { path: 'anything' }), {
      anything: ['root'],
      capabilities: ['root'],
    })
    const credential = node.server.rootToken
    injected(await node.root.post('sys/capabilities', { path: 'x', token: credential }), {
      x: ['root'],
      capabilities: ['root'],
    })
  })

  test('an unknown token or accessor is refused in the words of the reference', async () => {
    const path = 'transit/keys/a'
    const ask = (end: string, body: object) => node.root.post(`sys/capabilities${end}`, { path, ...body })
    expectRefused(await ask('', {}), 400, 'no token found')
    expectRefused(await ask('', { token: 'hvs.nobody' }), 400, '1 error occurred:\n\t* invalid token\n\n')
    expectRefused(await ask('-accessor', {}), 400, 'missing accessor')
    expectRefused(await ask('-accessor', { accessor: 'nobody' }), 400, '1 error occurred:\n\t* invalid accessor\n\n')
    expectRefused(await node.server.client('').post('sys/capabilities-self', { path }), 403, 'permission denied')
  })

  test('only -self is everybody’s', async () => {
    for (const end of ['', '-accessor'])
      expect((await client.post(`sys/capabilities${end}`, { token, accessor, path: 'x' })).status).toBe(403)
  })

  test('names that every object has are paths like others', async () => {
    const { body } = await client.post('sys/capabilities-self', {
      paths: ['__proto__', 'constructor', 'data', 'errors'],
    })
    const { data } = body as { data: object }
    expect(Object.entries(data)).toEqual([
      ['__proto__', ['deny']],
      ['constructor', ['deny']],
      ['data', ['deny']],
      ['errors', ['deny']],
    ])
  })

  test('follow a policy that has changed at once', async () => {
    const name = fresh('p')
    const write = (word: string) =>
      done(node.root.post(`sys/policies/acl/${name}`, { policy: `path "q" { capabilities = ["${word}"] }` }))
    await write('read')
    const made = await done(node.root.post('auth/token/create', { policies: [name] }))
    const own = node.server.client(made.string('auth.client_token'))
    for (const word of ['update', 'deny', 'list']) {
      await write(word)
      expect((await own.post('sys/capabilities-self', { path: 'q' })).body).toMatchObject({ capabilities: [word] })
    }
  })
})

describe('sys/internal/ui/resultant-acl', () => {
  test('shows the union of the caller’s policies', async () => {
    const reply = await client.get('sys/internal/ui/resultant-acl')
    const { data } = reply.body as { data: Record<'exact_paths' | 'glob_paths', object> }
    expect(data).toMatchObject({ root: false })
    expect(data.exact_paths).toMatchObject({
      'transit/keys/no': { capabilities: ['deny'] },
      'transit/none': { capabilities: ['deny'] },
      'auth/token/lookup-self': { capabilities: ['read'] },
    })
    expect(data.exact_paths).toHaveProperty(['transit/sign/+'], {
      capabilities: ['update'],
      allowed_parameters: { input: [], hash_algorithm: ['sha2-*'] },
      denied_parameters: { prehashed: [true] },
      required_parameters: ['input'],
    })
    expect(data.glob_paths).toEqual({
      'transit/keys/': { capabilities: all },
      'transit/wrapped/': { capabilities: ['read'], min_wrapping_ttl: 60, max_wrapping_ttl: 3600 },
      'sys/tools/hash/': { capabilities: ['update'] },
    })
    expect(reply.body).not.toHaveProperty('glob_paths')
  })

  test('says root of root, and nothing to nobody', async () => {
    expectData(await node.root.get('sys/internal/ui/resultant-acl'), { root: true })
    expectRefused(await node.server.client('').get('sys/internal/ui/resultant-acl'), 403, 'permission denied')
  })
})
