import { describe, expect, test } from 'vitest'
import { enable } from '../../audit/device.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode()
const grant = (path: string, ...capabilities: string[]) =>
  `path "${path}" { capabilities = ${JSON.stringify(capabilities)} }\n`
const any = ['create', 'read', 'update', 'delete'] as const
const text = 'path "a" { capabilities = ["read"] }'

describe('a deny on a policy or managed key', () => {
  test.each([
    ['sys/policies/acl/', (name: string) => name.toUpperCase()],
    ['sys/policies/acl/', (name: string) => `%20${name}%20`],
    ['sys/policies/acl/', (name: string) => `%20${name.toUpperCase()}`],
    ['sys/policy/', (name: string) => name.toUpperCase()],
    ['sys/managed-keys/pkcs11/', (name: string) => name.toUpperCase()],
  ])('below %s holds for every spelling of the name', async (base, spell) => {
    const name = fresh('p')
    const client = await node.limited(grant(`${base}*`, ...any) + grant(`${base}${name}`, 'deny'))
    for (const path of [base + name, base + spell(name)]) {
      for (const reply of [
        await client.get(path),
        await client.post(path, { policy: text }),
        await client.delete(path),
      ])
        expect(reply.status, `${path}: ${reply.text}`).toBe(403)
    }
    expect((await client.get(`${base}${spell(`other${name}`)}`)).status).toBe(404)
  })

  test('on an audited header holds for every spelling of the name', async () => {
    const name = fresh('x-')
    const base = 'sys/config/auditing/request-headers/'
    const client = await node.limited(grant(`${base}*`, 'sudo', ...any) + grant(`${base}${name}`, 'deny'))
    for (const spelled of [name, name.toUpperCase(), `%20${name}%20`]) {
      for (const reply of [
        await client.get(base + spelled),
        await client.post(base + spelled, { hmac: true }),
        await client.delete(base + spelled),
      ])
        expect(reply.status, `${spelled}: ${reply.text}`).toBe(403)
    }
    expect((await client.post(`${base}X-Other-${name}`, { hmac: true })).status).toBe(204)
    expect((await client.get(`${base}x-other-${name}`)).status).toBe(200)
    expect((await client.delete(`${base}x-OTHER-${name}`)).status).toBe(204)
  })

  test('holds for every spelling of a name with slashes', async () => {
    const name = fresh('p')
    const base = 'sys/policies/acl/'
    const client = await node.limited(grant(`${base}*`, ...any) + grant(`${base}team/${name}`, 'deny'))
    for (const path of [`team/${name}`, `TEAM/${name}`, `team/${name.toUpperCase()}`, `%20Team/${name}%20`])
      expect((await client.post(base + path, { policy: text })).status, path).toBe(403)
    expect((await client.get(`${base}team/other${name}`)).status).toBe(404)
  })

  test('holds for its own spelling too, if it is written with capitals', async () => {
    const name = fresh('p')
    const base = 'sys/policies/acl/'
    const client = await node.limited(grant(`${base}*`, ...any) + grant(base + name.toUpperCase(), 'deny'))
    const refused = await client.get(base + name.toUpperCase())
    expect(refused.status).toBe(403)
    expect(refused.text).toContain(`path \\"${base}${name.toUpperCase()}\\" in policy`)
    expect((await client.get(base + name)).status).toBe(404)
  })

  test('holds for the default issuer of a mount, in any spelling of the word', async () => {
    const mount = fresh('pki')
    await done(node.root.post(`sys/mounts/${mount}`, { type: 'pki' }))
    await done(node.root.post(`${mount}/root/generate/internal`, { common_name: 'x', key_type: 'ec' }))
    const client = await node.limited(grant(`${mount}/issuer/*`, ...any) + grant(`${mount}/issuer/default`, 'deny'))
    for (const word of ['default', 'Default', '%20DEFAULT']) {
      expect((await client.get(`${mount}/issuer/${word}`)).status, word).toBe(403)
    }
    expect((await node.root.get(`${mount}/issuer/Default`)).status).toBe(200)
  })
})

test('a grant on the stored name holds for any spelling', async () => {
  const name = fresh('p')
  const stored = await node.limited(grant(`sys/policies/acl/${name}`, 'update', 'read'))
  await done(stored.post(`sys/policies/acl/%20${name.toUpperCase()}%20`, { policy: text }))
  expectData(await stored.get(`sys/policies/acl/${name.toUpperCase()}`), { name, policy: text })
  const spelled = await node.limited(grant(`sys/policies/acl/${name.toUpperCase()}`, 'read'))
  expect((await spelled.get(`sys/policies/acl/${name.toUpperCase()}`)).status).toBe(403)
})

test('audit shows the name as it is stored', async () => {
  const device = await enable(node.root)
  const name = fresh('p')
  await done(node.root.post(`sys/policies/acl/${name.toUpperCase()}`, { policy: text }))
  expect(device.of(`sys/policies/acl/${name}`)).toHaveLength(2)
  expect(device.text()).not.toContain(name.toUpperCase())
  await device.disable()
})

test('sys/capabilities-self answers as a request would be decided', async () => {
  const name = fresh('p')
  const base = 'sys/policies/acl/'
  const client = await node.limited(
    grant('sys/capabilities-self', 'update') +
      grant(`${base}*`, 'read') +
      grant(`${base}${name}`, 'deny') +
      grant(`${base}${name.toUpperCase()}2`, 'deny'),
  )
  const paths = [name.toUpperCase(), `/${base}${name}`, `${name.toUpperCase()}2`, `${name}2`]
  const asked = paths.map((path) => (path.startsWith('/') ? path : base + path))
  const { body } = await done(client.post('sys/capabilities-self', { paths: asked }))
  const { data } = body as { data: Record<string, string[]> }
  expect(asked.map((path) => data[path])).toEqual([['deny'], ['deny'], ['deny'], ['read']])
})

describe('writing a policy', () => {
  const warning = (path: string, compared: string) =>
    `path "${path}" grants nothing, and denies only requests that are spelled so: write "${compared}", which is how requests are compared`

  test.each([
    ['sys/policies/acl/ADMIN', 'sys/policies/acl/admin'],
    ['sys/policies/acl/ admin ', 'sys/policies/acl/admin'],
    ['sys/policy/Ops*', 'sys/policy/ops*'],
    ['sys/policies/acl/Team/Dev', 'sys/policies/acl/team/dev'],
    ['sys/policies/acl/Team/+', 'sys/policies/acl/team/+'],
    ['sys/policies/acl/Team/*', 'sys/policies/acl/team/*'],
    ['+/managed-keys/+/HSM-1/test/sign', '+/managed-keys/+/hsm-1/test/sign'],
    ['pki/issuer/DEFAULT/issue/+', 'pki/issuer/default/issue/+'],
  ])('warns of the path %s, which no request has', async (path, compared) => {
    const reply = await node.root.post(`sys/policies/acl/${fresh('p')}`, { policy: grant(path, 'read') })
    expectData(reply, null, [warning(path, compared)])
  })

  test.each(['sys/policies/acl/a b *', 'sys/policies/*', 'transit/keys/K', 'sys/mounts/M', 'sys/+/acl/+', 'SYS/X'])(
    'says nothing of the path %s',
    async (path) => {
      const reply = await node.root.post(`sys/policies/acl/${fresh('p')}`, { policy: grant(path, 'read') })
      expect([reply.status, reply.text]).toEqual([204, ''])
    },
  )
})

test.each(['%20', '%20.%20', '%20..'])('a policy is not named "%s"', async (name) => {
  const reply = await node.root.post(`sys/policies/acl/${name}`, { policy: text })
  expect(reply.status).toBe(400)
  expect(reply.text).toContain('policy name must')
  expectRefused(await node.root.get('sys/policies/acl/%2E'), 400, 'the path must not contain a "." segment')
})
