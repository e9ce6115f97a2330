import { describe, expect, test } from 'vitest'
import { done, enveloped, expectData, expectRefused, fresh, hello, useNode } from '../api/node.ts'

const node = useNode()
const tune = (path: string, body: object) => node.root.post(`sys/mounts/${path}/tune`, body)
const tuned = async (path: string) => {
  const reply = await done(node.root.get(`sys/mounts/${path}/tune`))
  return (reply.body as { data: object }).data
}
const system = { default_lease_ttl: 2764800, max_lease_ttl: 2764800, force_no_cache: false }
/** Exactly the body that the CLI sends for `secrets tune` without any setting. */
const fromCli = { options: null, default_lease_ttl: '', max_lease_ttl: '', force_no_cache: false }

describe('sys/mounts/:path/tune', () => {
  test('reads the settings with the TTLs that hold, flat, in data and at the top', async () => {
    const path = await node.mount()
    const data = { ...system, description: '' }
    const reply = await node.root.get(`sys/mounts/${path}/tune`)
    expect(reply.body).toEqual({ ...(enveloped(data) as object), ...data })
    expect(await tuned('sys')).toEqual({ ...system, description: 'system endpoints' })
  })

  test('changes what is named, by 204, and nothing else', async () => {
    const path = await node.mount()
    const reply = await node.root.call('PUT', `sys/mounts/${path}/tune`, { ...fromCli, max_lease_ttl: '24h' })
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    expect(await tuned(path)).toEqual({ ...system, default_lease_ttl: 86400, max_lease_ttl: 86400, description: '' })
    const all = {
      default_lease_ttl: 3600,
      description: 'd',
      listing_visibility: 'unauth',
      audit_non_hmac_request_keys: ['a', 'b'],
      audit_non_hmac_response_keys: 'c',
      allowed_response_headers: 'Last-Modified, ETag',
      passthrough_request_headers: ['If-Modified-Since'],
      allowed_managed_keys: ['hsm'],
      options: { version: '2' },
    }
    await done(tune(path, all))
    const lists = { audit_non_hmac_response_keys: ['c'], allowed_response_headers: ['Last-Modified', 'ETag'] }
    const expected = { ...system, ...all, ...lists, max_lease_ttl: 86400 }
    expect(await tuned(path)).toEqual(expected)
    await done(tune(path, fromCli))
    expect(await tuned(path)).toEqual(expected)
    await done(tune(path, { audit_non_hmac_request_keys: '', listing_visibility: '', max_lease_ttl: 'system' }))
    const { audit_non_hmac_request_keys: _, listing_visibility: __, ...rest } = expected
    expect(await tuned(path)).toEqual({ ...rest, max_lease_ttl: 2764800 })
    await done(tune(path, { default_lease_ttl: 'system', description: '' }))
    expect(await tuned(path)).toMatchObject({ default_lease_ttl: 2764800, description: '' })
  })

  test('shows in the listing, with 0 for the server’s TTLs', async () => {
    const path = await node.mount()
    await done(tune(path, { default_lease_ttl: '90s' }))
    expect((await node.root.get(`sys/mounts/${path}`)).body).toMatchObject({
      data: { config: { default_lease_ttl: 90, max_lease_ttl: 0, force_no_cache: false } },
    })
  })

  test.each([
    [{ default_lease_ttl: '800h' }, 'default_lease_ttl must not be longer than max_lease_ttl, which is 2764800 s here'],
    [
      { max_lease_ttl: '1h', default_lease_ttl: '2h' },
      'default_lease_ttl must not be longer than max_lease_ttl, which is 3600 s here',
    ],
    [{ plugin_version: 'v1' }, 'plugin_version is not available: engines are built in'],
  ])('refuses %j', async (body, text) => {
    expectRefused(await tune(await node.mount(), body), 400, text)
  })

  test('refuses a visibility nobody knows and a TTL that is none, by name', async () => {
    const path = await node.mount()
    expect((await tune(path, { listing_visibility: 'all' })).text).toContain('listing_visibility')
    expect((await tune(path, { max_lease_ttl: 'soon' })).text).toContain('max_lease_ttl')
    expect((await tune(path, { max_lease_ttl: -5 })).text).toContain('negative')
    expect(await tuned(path)).toEqual({ ...system, description: '' })
  })

  test('says what is not there and what cannot be tuned', async () => {
    const path = fresh('m')
    expectRefused(await node.root.get(`sys/mounts/${path}/tune`), 400, `cannot fetch sysview for path "${path}/"`)
    expectRefused(await tune(path, {}), 400, `tune of path "${path}/" failed: no mount entry found`)
    expectRefused(await tune('sys', { max_lease_ttl: '1h' }), 400, 'cannot tune "sys/"')
    expectRefused(await tune('auth/token', { max_lease_ttl: '1h' }), 400, 'cannot tune "auth/token/"')
    expectRefused(await node.root.post('sys/auth/token/tune', {}), 400, 'cannot tune "auth/token/"')
    expect((await node.root.delete(`sys/mounts/${path}/tune`)).status).toBe(405)
  })

  test('of a mount with a path of many parts', async () => {
    const path = `${fresh('m')}/a/tune-me`
    await done(node.root.post(`sys/mounts/${path}`, { type: 'transit' }))
    await done(tune(path, { description: 'deep' }))
    expect(await tuned(path)).toMatchObject({ description: 'deep' })
    expect((await node.root.post(`sys/mounts/${path}/tune`, { type: 'transit' })).status).toBe(204)
  })

  test('under many writers at once loses none of what they set', async () => {
    const path = await node.mount()
    const names = ['description', 'listing_visibility', 'max_lease_ttl', 'allowed_response_headers'] as const
    const values = {
      description: 'd',
      listing_visibility: 'hidden',
      max_lease_ttl: '1h',
      allowed_response_headers: 'x',
    }
    await Promise.all(names.map((name) => done(tune(path, { [name]: values[name] }))))
    expect(await tuned(path)).toMatchObject({ ...values, max_lease_ttl: 3600, allowed_response_headers: ['x'] })
  })

  test('needs the capability on the mount’s own tune path', async () => {
    const path = await node.mount()
    const client = await node.limited(`path "sys/mounts/${path}/tune" { capabilities = ["read"] }`)
    expect((await client.get(`sys/mounts/${path}/tune`)).status).toBe(200)
    expect((await client.post(`sys/mounts/${path}/tune`, {})).status).toBe(403)
    expect((await client.get(`sys/mounts/${path}`)).status).toBe(403)
  })
})

describe('sys/auth', () => {
  const token = {
    accessor: expect.stringMatching(/^token_[0-9a-f]{8}$/),
    config: { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false, token_type: 'default-service' },
    description: 'token based credentials',
    type: 'token',
  }

  test('lists the one method, in data and at the top', async () => {
    const { body } = await node.root.get('sys/auth')
    expect(body).toMatchObject({ data: { 'token/': token }, 'token/': token })
    expect(Object.keys((body as { data: object }).data)).toEqual(['token/'])
    expect((await node.root.get('sys/auth/token')).body).toMatchObject({ data: token })
    expectRefused(await node.root.get('sys/auth/nope'), 400, 'No auth engine at nope/')
  })

  test('is tuned for reading under both of its paths', async () => {
    const data = { ...system, description: 'token based credentials', token_type: 'default-service' }
    for (const path of ['sys/auth/token/tune', 'sys/mounts/auth/token/tune']) {
      expect((await node.root.get(path)).body).toMatchObject({ data, ...data })
    }
  })

  test('refuses every other method in words, and keeps its own', async () => {
    const text = 'plugin not found in the catalog: approle. Tokens are the one way to sign in to this server'
    expectRefused(await node.root.post('sys/auth/approle', { type: 'approle' }), 400, text)
    expectRefused(await node.root.post('sys/auth/x', {}), 400, 'backend type must be specified as a string')
    expectRefused(await node.root.delete('sys/auth/token'), 400, 'token credential backend cannot be disabled')
    expect((await node.root.delete('sys/auth/nope')).status).toBe(204)
  })

  test('needs sudo below it', async () => {
    const grant = (...capabilities: string[]) => `path "sys/auth*" { capabilities = ${JSON.stringify(capabilities)} }`
    const client = await node.limited(grant('read', 'update'))
    expect((await client.get('sys/auth')).status).toBe(200)
    for (const path of ['sys/auth/token', 'sys/auth/token/tune']) expect((await client.get(path)).status).toBe(403)
    expect((await (await node.limited(grant('read', 'sudo'))).get('sys/auth/token')).status).toBe(200)
  })
})

describe('sys/remount', () => {
  const move = (from: string, to: string) => node.root.post('sys/remount', { from, to })

  test('moves a mount with its keys; every answer says so by then', async () => {
    const [from, to] = [await node.mount(), fresh('n')]
    await done(node.root.post(`${from}/keys/k`))
    const ciphertext = (await done(node.root.post(`${from}/encrypt/k`, { plaintext: hello }))).string('data.ciphertext')
    const reply = await done(move(`${from}/`, to))
    const id = reply.string('data.migration_id')
    expect(reply.body).toMatchObject({ migration_id: id, warnings: [expect.stringContaining('move')] })
    expectData(await node.root.get(`sys/remount/status/${id}`), {
      migration_id: id,
      migration_info: { source_mount: `${from}/`, target_mount: `${to}/`, status: 'success' },
    })
    expect((await done(node.root.post(`${to}/decrypt/k`, { ciphertext }))).string('data.plaintext')).toBe(hello)
    expect((await node.root.get(`${from}/keys/k`)).status).toBe(404)
    expect((await node.root.get(`sys/mounts/${from}`)).status).toBe(400)
  })

  test('lets policies decide by the new path', async () => {
    const [from, to] = [await node.mount(), fresh('n')]
    await done(node.root.post(`${from}/keys/k`))
    const grant = (path: string) => `path "${path}/keys/k" { capabilities = ["read"] }`
    const [before, after] = [await node.limited(grant(from)), await node.limited(grant(to))]
    expect((await before.get(`${from}/keys/k`)).status).toBe(200)
    await done(move(from, to))
    expect((await after.get(`${to}/keys/k`)).status).toBe(200)
    expect((await before.get(`${to}/keys/k`)).status).toBe(403)
    expect((await after.get(`${from}/keys/k`)).status).toBe(403)
  })

  test('needs sudo, and refuses what cannot be', async () => {
    const client = await node.limited('path "sys/remount" { capabilities = ["update"] }')
    expect((await client.post('sys/remount', { from: 'transit', to: 'x' })).status).toBe(403)
    const both = "both 'from' and 'to' path must be specified as a string"
    expectRefused(await node.root.post('sys/remount', { from: 'transit' }), 400, both)
    expectRefused(await move('nope', 'x'), 400, 'no matching mount at "nope/"')
    expectRefused(await move('transit', 'pki'), 400, 'path already in use at "pki/"')
    expectRefused(await move('auth/token', 'auth/x'), 400, 'mount paths that begin with "auth/" are reserved')
    expectRefused(await node.root.get('sys/remount/status/00000000-0000-4000-8000-000000000000'), 404)
  })
})

describe('sys/plugins/reload/backend', () => {
  const reload = (body: object) => node.root.call('PUT', 'sys/plugins/reload/backend', body)

  test('reloads by type, as the CLI asks for it, and by mounts of any spelling', async () => {
    const path = await node.mount()
    for (const body of [
      { plugin: 'transit', mounts: null, scope: '' },
      { mounts: [path, `${path}/`, 'auth/token', 'sys/'] },
      { mounts: `${path},transit`, scope: 'global' },
    ]) {
      const reply = await reload(body)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body).toMatchObject({ data: { reload_id: reply.string('request_id') } })
    }
    await done(node.root.post(`${path}/keys/k`))
  })

  test('answers the path that the CLI asks since Vault 1.16', async () => {
    const path = 'sys/plugins/reload/unknown/transit'
    expect((await node.root.call('PUT', path, { scope: 'global' })).body).toHaveProperty('data.reload_id')
    expectRefused(await node.root.post('sys/plugins/reload/secret/kv'), 400, 'plugin not found in the catalog: kv')
    expect((await node.root.post('sys/plugins/reload/other/transit')).status).toBe(404)
  })

  test('refuses what names nothing, in the words of the reference', async () => {
    expectRefused(await reload({}), 400, 'plugin or mounts must be provided')
    expectRefused(
      await reload({ plugin: 'transit', mounts: ['transit'] }),
      400,
      'plugin and mounts cannot be set at the same time',
    )
    expectRefused(await reload({ plugin: 'kv' }), 400, 'plugin not found in the catalog: kv')
    expectRefused(
      await reload({ mounts: ['nomount'] }),
      400,
      '1 error occurred:\n\t* cannot fetch mount entry on "nomount/"\n\n',
    )
    expectRefused(await reload({ plugin: 'transit', scope: 'here' }), 400, 'reload scope must be omitted or "global"')
  })
})
