import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { fresh, hello, useNode } from '../api/node.ts'

const run = promisify(execFile)
const node = useNode()

/** What `curl -s ARGUMENTS URL/PATH` prints, as JSON, with the status. */
async function curl(path: string, ...args: string[]): Promise<{ status: number; body: unknown }> {
  const { stdout } = await run('curl', ['-s', '-w', '\n%{http_code}', ...args, `${node.server.url}/v1/${path}`])
  const end = stdout.trimEnd().lastIndexOf('\n')
  const text = stdout.slice(0, Math.max(0, end)).trim()
  return { status: Number(stdout.slice(end + 1)), body: text === '' ? undefined : JSON.parse(text) }
}
const token = () => ['-H', `X-Vault-Token: ${node.server.rootToken}`]

describe('curl as the documentation writes it', () => {
  test('creates a key by --request POST without a body', async () => {
    const name = fresh('k')
    const made = await curl(`transit/keys/${name}`, '--header', ...token().slice(1), '--request', 'POST')
    expect(made).toMatchObject({ status: 200, body: { data: { name, latest_version: 1 } } })
  })

  test('sends JSON by -d, which curl calls a form', async () => {
    const name = await node.key()
    const sealed = await curl(`transit/encrypt/${name}`, ...token(), '-d', `{"plaintext": "${hello}"}`)
    expect(sealed.status).toBe(200)
    const { ciphertext } = (sealed.body as { data: { ciphertext: string } }).data
    const opened = await curl(
      `transit/decrypt/${name}`,
      ...token(),
      '--request',
      'PUT',
      '--data',
      JSON.stringify({ ciphertext }),
    )
    expect(opened).toMatchObject({ status: 200, body: { data: { plaintext: hello } } })
  })

  test('sends JSON with surrounding blanks from a file, and a form that is one', async () => {
    const name = await node.key()
    const blanks = await curl(`transit/encrypt/${name}`, ...token(), '-d', `  \n {"plaintext":"${hello}"}`)
    expect(blanks.status).toBe(200)
    const form = await curl(`transit/encrypt/${name}`, ...token(), '--data-urlencode', `plaintext=${hello}`)
    expect(form).toMatchObject({ status: 200, body: { data: { key_version: 1 } } })
  })

  test('lists by -X LIST, which is not a standard HTTP method', async () => {
    const mount = await node.mount()
    await node.root.post(`${mount}/keys/a`)
    const listed = { status: 200, body: { data: { keys: ['a'] } } }
    expect(await curl(`${mount}/keys`, ...token(), '-X', 'LIST')).toMatchObject(listed)
    expect(await curl(`${mount}/keys`, ...token(), '--request', 'LIST', '--http1.1')).toMatchObject(listed)
    expect(await curl(`${mount}/keys?list=true`, ...token())).toMatchObject(listed)
  })

  test('lists twice over one connection', async () => {
    const mount = await node.mount()
    await node.root.post(`${mount}/keys/a`)
    const url = `${node.server.url}/v1/${mount}/keys`
    const { stdout } = await run('curl', ['-s', ...token(), '-X', 'LIST', url, url])
    expect(stdout.match(/"keys":\["a"\]/g)).toHaveLength(2)
  })

  test('deletes, and gets an empty answer', async () => {
    const name = await node.key()
    await curl(`transit/keys/${name}/config`, ...token(), '-d', '{"deletion_allowed": true}')
    expect(await curl(`transit/keys/${name}`, ...token(), '-X', 'DELETE')).toEqual({ status: 204, body: undefined })
  })

  test('signs in by Authorization: Bearer, writes a policy, and uses a token limited by it', async () => {
    const [name, policy] = [await node.key(), fresh('p')]
    const bearer = ['-H', `Authorization: Bearer ${node.server.rootToken}`]
    const rules = `path "transit/encrypt/${name}" { capabilities = ["update"] }`
    const written = await curl(
      `sys/policies/acl/${policy}`,
      ...bearer,
      '-X',
      'PUT',
      '-d',
      JSON.stringify({ policy: rules }),
    )
    expect(written.status).toBe(204)
    const created = await curl('auth/token/create', ...bearer, '-d', JSON.stringify({ policies: [policy], ttl: '1h' }))
    const { client_token } = (created.body as { auth: { client_token: string } }).auth
    const limited = ['-H', `X-Vault-Token: ${client_token}`]
    const body = JSON.stringify({ plaintext: hello })
    expect((await curl(`transit/encrypt/${name}`, ...limited, '-d', body)).status).toBe(200)
    expect((await curl(`transit/decrypt/${name}`, ...limited, '-d', body)).status).toBe(403)
  })

  test('waits for 100 Continue before it sends a large body', async () => {
    const input = Buffer.alloc(3_000_000, 1).toString('base64')
    const told = run('curl', [
      '-s',
      ...token(),
      '-H',
      'Expect: 100-continue',
      '-d',
      '@-',
      `${node.server.url}/v1/transit/hash`,
    ])
    told.child.stdin?.end(JSON.stringify({ input }))
    expect(JSON.parse((await told).stdout)).toMatchObject({ data: { sum: expect.stringMatching(/^[0-9a-f]{64}$/) } })
  })
})
