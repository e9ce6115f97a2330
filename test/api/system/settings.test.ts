import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSql } from '../../attack/sql.ts'
import { enable, hidden, type TestDevice } from '../../audit/device.ts'
import { done, expectData, expectRefused, fresh, useNode } from '../node.ts'

const node = useNode({ workers: 2 })

const health = (headers: Record<string, string>, method = 'GET') =>
  new Promise<{ status: number | undefined; headers: Record<string, unknown> }>((resolve, reject) => {
    request(`${node.server.url}/v1/sys/health`, { method, headers: { ...headers, Connection: 'close' } }, (reply) => {
      reply.resume().once('end', () => resolve({ status: reply.statusCode, headers: reply.headers }))
    })
      .once('error', reject)
      .end()
  })

describe('sys/config/auditing/request-headers', () => {
  const path = 'sys/config/auditing/request-headers'
  let device: TestDevice
  beforeAll(async () => {
    device = await enable(node.root)
  })
  afterAll(() => device.disable())

  test('what is set is read under the name that was sent, listed and taken away; names are folded', async () => {
    const name = fresh('x-')
    expect((await node.root.post(`${path}/${name.toUpperCase()}`, { hmac: true })).status).toBe(204)
    expect((await node.root.get(`${path}/${name}`)).body).toMatchObject({ data: { [name]: { hmac: true } } })
    const sent = name.toUpperCase()
    expect((await node.root.get(`${path}/${sent}`)).body).toMatchObject({
      data: { [sent]: { hmac: true } },
      [sent]: { hmac: true },
    })
    expect((await node.root.get(path)).body).toMatchObject({ data: { headers: { [name]: { hmac: true } } } })
    await done(node.root.post(`${path}/${name}`))
    expect((await node.root.get(`${path}/${name}`)).body).toMatchObject({ data: { [name]: { hmac: false } } })
    expect((await node.root.delete(`${path}/${name}`)).status).toBe(204)
    expectRefused(await node.root.get(`${path}/${name}`), 400, 'Could not find header in config')
    expect((await node.root.delete(`${path}/${name}`)).status).toBe(204)
  })

  test('the next line of every worker shows the header, as an HMAC or in clear', async () => {
    const [clear, secret, other] = [fresh('x-'), fresh('x-'), fresh('x-')]
    const ask = async (key: string) => {
      const headers = { [clear]: 'plain "text"', [secret]: 'secret', [other]: 'unasked' }
      await node.root.call('GET', `transit/keys/${key}`, undefined, headers)
      return device.of(`transit/keys/${key}`).map((line) => line.request.headers)
    }
    expect(await ask(fresh('k'))).toEqual([undefined, undefined])
    await done(node.root.post(`${path}/${clear}`, { hmac: false }))
    await done(node.root.post(`${path}/${secret}`, { hmac: true }))
    const shown = { [clear]: ['plain "text"'], [secret]: [expect.stringMatching(hidden)] }
    for (let round = 0; round < 6; round++) expect(await ask(fresh('k'))).toEqual([shown, shown])
    expect(device.text()).toContain(await device.hash('secret'))
    await done(node.root.delete(`${path}/${secret}`))
    for (let round = 0; round < 6; round++) {
      const rest = { [clear]: ['plain "text"'] }
      expect(await ask(fresh('k'))).toEqual([rest, rest])
    }
    expect(device.text()).not.toContain('unasked')
  })

  test.each(['X-Vault-Token', 'authorization'])('%s is never audited as a header', async (name) => {
    const why = `the header ${name.toLowerCase()} carries a credential, which is recorded as client_token`
    expectRefused(await node.root.post(`${path}/${name}`, { hmac: true }), 400, why)
  })

  test('needs sudo', async () => {
    const policy = `path "${path}/*" { capabilities = ["read", "update", "delete"] }`
    const client = await node.limited(policy)
    for (const reply of [
      await client.get(`${path}/x`),
      await client.post(`${path}/x`),
      await client.delete(`${path}/x`),
    ])
      expect([reply.status, reply.text]).toEqual([403, expect.stringContaining('does not grant \\"sudo\\"')])
  })
})

describe('sys/config/cors', { shuffle: false }, () => {
  const origin = 'https://console.example.org'
  const ask = async (headers: Record<string, string>, method?: string) => {
    const reply = await health(headers, method)
    return [reply.status, reply.headers['access-control-allow-origin'], reply.headers.vary]
  }
  const preflight = { Origin: origin, 'Access-Control-Request-Method': 'PUT' }

  test('is off at first: origins mean nothing', async () => {
    expectData(await node.root.get('sys/config/cors').then(bare), { enabled: false })
    expect(await ask({ Origin: origin })).toEqual([200, undefined, undefined])
    expect((await health(preflight, 'OPTIONS')).status).toBe(400)
  })

  test.each([
    [{}, 'at least one origin or the wildcard must be provided.'],
    [{ allowed_origins: ['*', origin] }, "to allow all origins the '*' must be the only value for allowed_origins"],
    [
      { allowed_origins: 'console.example.org' },
      'allowed_origins: "console.example.org" is not an origin (scheme://host, with or without a port)',
    ],
    [{ allowed_origins: '*', allowed_headers: 'X-A: b' }, 'allowed_headers: "X-A: b" is not the name of a header'],
    [{ allowed_origins: `https://${'a'.repeat(248)}` }, 'allowed_origins: an origin has at most 255 characters'],
    [{ allowed_origins: '*', allowed_headers: 'a'.repeat(129) }, 'allowed_headers: a name has at most 128 characters'],
  ])('%j is refused', async (body, why) => {
    expectRefused(await node.root.post('sys/config/cors', body), 400, why)
  })

  test('an allowed origin is answered with its headers, by every worker, and another one with 403', async () => {
    const body = { allowed_origins: [origin, 'http://127.0.0.1:8080'], allowed_headers: 'X-Own' }
    expect((await node.root.post('sys/config/cors', body)).status).toBe(204)
    const { data } = (await node.root.get('sys/config/cors')).body as { data: Record<string, unknown> }
    expect(data).toMatchObject({ enabled: true, allowed_origins: body.allowed_origins })
    expect(data.allowed_headers).toEqual(expect.arrayContaining(['X-Vault-Token', 'Authorization', 'X-Own']))
    for (let round = 0; round < 6; round++) {
      expect(await ask({ Origin: origin })).toEqual([200, origin, 'Origin'])
      expect(await ask({ Origin: 'https://evil.example.org' })).toEqual([403, undefined, undefined])
      expect(await ask({})).toEqual([200, undefined, undefined])
    }
    const told = await health(preflight, 'OPTIONS')
    expect([told.status, told.headers]).toMatchObject([
      200,
      {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'DELETE, GET, OPTIONS, POST, PUT, LIST, PATCH',
        'access-control-allow-headers': expect.stringContaining('X-Vault-Token,X-Own'),
        'access-control-max-age': '300',
      },
    ])
    expect((await health({ ...preflight, 'Access-Control-Request-Method': 'BREW' }, 'OPTIONS')).status).toBe(405)
  })

  test('a setting that somebody edits or removes in the database is not believed', async () => {
    const { database } = node.server
    await using open = await openSql(database.url)
    const row = await open.row("SELECT * FROM system_settings WHERE kind = 'cors'")
    await open.rows("DELETE FROM system_settings WHERE kind = 'cors'")
    await node.server.stop()
    await node.server.start()
    expect((await health({ Origin: 'https://evil.example.org' })).status).toBe(500)
    await open.put('system_settings', { ...row, value: '{"origins":["*"],"headers":[]}' })
    expect((await health({ Origin: 'https://evil.example.org' })).status).toBe(500)
    await open.rows("DELETE FROM system_settings WHERE kind = 'cors'")
    await open.put('system_settings', row)
    expect((await health({ Origin: 'https://evil.example.org' })).status).toBe(403)
  }, 120_000)

  test('* allows every origin, and no setting none', async () => {
    await done(node.root.post('sys/config/cors', { allowed_origins: '*' }))
    expect(await ask({ Origin: 'https://any.example.org' })).toEqual([200, 'https://any.example.org', 'Origin'])
    expect((await node.root.delete('sys/config/cors')).status).toBe(204)
    for (let round = 0; round < 6; round++) expect(await ask({ Origin: origin })).toEqual([200, undefined, undefined])
  })
})

/** An answer without the members that it repeats at the top level. */
function bare(reply: Awaited<ReturnType<typeof node.root.get>>): typeof reply {
  const { enabled: _, ...body } = reply.body as Record<string, unknown>
  return { ...reply, body }
}
