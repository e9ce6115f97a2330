import { beforeAll, describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { done, enveloped, expectRefused, fresh, hello, useNode, uuid } from '../node.ts'

const node = useNode()
const enable = (path: string, body: Record<string, unknown>) => node.root.post(`sys/mounts/${path}`, body)
const read = (path: string) => node.root.get(`sys/mounts/${path}`)
const described = (type: string, changes = {}) => ({
  accessor: expect.stringMatching(`^${type}_[0-9a-f]{8}$`),
  config: { default_lease_ttl: 0, force_no_cache: false, max_lease_ttl: 0 },
  deprecation_status: 'supported',
  description: '',
  external_entropy_access: false,
  local: false,
  options: null,
  plugin_version: '',
  running_plugin_version: '',
  running_sha256: '',
  seal_wrap: false,
  type,
  uuid: expect.stringMatching(uuid),
  ...changes,
})
/** Exactly what the CLI sends for `secrets enable`. */
const fromCli = {
  type: 'transit',
  description: '',
  config: { options: null, default_lease_ttl: '0s', max_lease_ttl: '0s', force_no_cache: false },
  local: false,
  seal_wrap: false,
  external_entropy_access: false,
  options: null,
}

let atFirst: Reply
beforeAll(async () => {
  atFirst = await node.root.get('sys/mounts')
})

describe('the mounts of a new installation', () => {
  test('are transit/ and pki/, listed in data and at the top level', async () => {
    const passed = { passthrough_request_headers: ['If-Modified-Since'], allowed_response_headers: ['Last-Modified'] }
    const pki = described('pki')
    const mounts = {
      'pki/': { ...pki, config: { ...pki.config, ...passed } },
      'sys/': described('system', { description: 'system endpoints', uuid: '', deprecation_status: undefined }),
      'transit/': described('transit'),
    }
    expect(atFirst.body).toEqual({ ...(enveloped(mounts) as object), ...mounts })
  })

  test('can be enabled once more, with the settings of that request, keeping the accessor', async () => {
    const before = (await read('transit')).string('data.accessor')
    const config = { ...fromCli.config, max_lease_ttl: '24h' }
    const reply = await enable('transit', { ...fromCli, config, description: 'mine' })
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    expect((await read('transit')).body).toMatchObject({
      data: { accessor: before, description: 'mine', config: { max_lease_ttl: 86400 } },
    })
    expectRefused(await enable('transit', fromCli), 400, 'path is already in use at transit/')
    expectRefused(await enable('pki', fromCli), 400, 'path is already in use at pki/')
  })
})

describe('enabling', () => {
  test('answers 204, and the mount works at once', async () => {
    const path = fresh('m')
    expect((await enable(path, fromCli)).status).toBe(204)
    expect((await read(path)).body).toMatchObject({ ...described('transit'), data: described('transit') })
    await done(node.root.post(`${path}/keys/a`))
    expect((await node.root.post(`${path}/encrypt/a`, { plaintext: hello })).status).toBe(200)
  })

  test('takes the engine as plugin_name, too, with the type that older clients send beside it', async () => {
    const path = fresh('m')
    await done(enable(path, { type: 'plugin', plugin_name: 'transit' }))
    expect((await read(path)).body).toMatchObject({ data: { type: 'transit' } })
    expectRefused(await enable(fresh('m'), { type: 'plugin' }), 400, 'backend type must be specified as a string')
  })

  test('takes paths of many parts, and a slash at the end of a path', async () => {
    const path = `${fresh('m')}/team/keys`
    await done(enable(path, fromCli))
    await done(node.root.post(`${path}/keys/a`))
    expect((await read(`${path}/`)).status).toBe(200)
    expectRefused(await enable(`${path}/deeper`, fromCli), 400, `path is already in use at ${path}/`)
    const above = path.split('/')[0] ?? ''
    expectRefused(await enable(above, fromCli), 400, `path is already in use at ${path}/`)
  })

  test.each(['v1', 'ui', 'sys', 'auth', 'certs', 'cubbyhole', 'identity'])(
    'under the reserved name %s is refused',
    async (name) => {
      const text = `mount paths that begin with "${name}/" are reserved`
      expectRefused(await enable(name, fromCli), 400, text)
      expectRefused(await enable(`${name}/x`, fromCli), 400, text)
    },
  )

  test.each([
    [{}, 'backend type must be specified as a string'],
    [{ type: 'zzz' }, 'plugin not found in the catalog: zzz'],
    [
      { type: 'transit', config: { default_lease_ttl: '2h', max_lease_ttl: '1h' } },
      'default_lease_ttl must not be longer than max_lease_ttl, which is 3600 s here',
    ],
    [{ type: 'transit', config: 7 }, 'config must be an object'],
    [{ type: 'transit', external_entropy_access: true }, 'external_entropy_access is not available'],
    [{ type: 'transit', plugin_version: 'v1' }, 'plugin_version is not available: engines are built in'],
    [{ type: 'transit', config: { plugin_version: 'v1' } }, 'plugin_version is not available: engines are built in'],
  ])('with %j is refused: %s', async (body, text) => {
    const path = fresh('m')
    expectRefused(await enable(path, body), 400, text)
    expectRefused(await read(path), 400, `No secret engine mount at ${path}/`)
  })

  test('the same path from many clients at once makes one mount', async () => {
    const path = fresh('m')
    const replies = await Promise.all(Array.from({ length: 6 }, () => enable(path, fromCli)))
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 400, 400, 400, 400, 400])
  })
})

describe('disabling', () => {
  test('removes everything in the mount, and is done already where there is none', async () => {
    const path = await node.mount()
    await done(node.root.post(`${path}/keys/a`))
    await done(node.root.post(`${path}/keys/b`, { type: 'ed25519' }))
    for (let time = 0; time < 2; time++) {
      const reply = await node.root.delete(`sys/mounts/${path}`)
      expect({ status: reply.status, text: reply.text }).toEqual({ status: 204, text: '' })
    }
    expectRefused(
      await node.root.get(`${path}/keys/a`),
      404,
      `no handler for route "${path}/keys/a". route entry not found.`,
    )
    await done(enable(path, fromCli))
    expectRefused(await node.root.list(`${path}/keys`), 404)
  })

  test('is refused for what always stands', async () => {
    expectRefused(await node.root.delete('sys/mounts/sys'), 400, 'cannot unmount "sys/"')
    expect((await node.root.delete('sys/mounts/auth/token')).status).toBe(400)
  })
})

test('a path that no engine has is 404 in the words of the reference', async () => {
  expectRefused(await node.root.get('pki/nothing'), 404, '1 error occurred:\n\t* unsupported path\n\n')
})
