import { request } from 'node:http'
import { expect, test } from 'vitest'
import { done, expectRefused, useNode } from '../api/node.ts'
import { openSql } from '../attack/sql.ts'
import { enable, hidden, type Line } from './device.ts'

/** Requests that fail before anything is known of them but their line and headers. */

const node = useNode()

/** Sends a request line as it is. */
const send = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(node.server.url)
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.on('error', reject).end()
  })

/** The two lines, which must be of one request and have no caller. */
function expectLines(lines: readonly Line[], request: object, error: string): void {
  expect(lines.map(({ type }) => type)).toEqual(['request', 'response'])
  for (const line of lines) {
    expect(line).toMatchObject({ request: { id: lines[0]?.request.id, ...request }, error })
    expect(line.auth).not.toHaveProperty('policy_results')
    expect(line.request).not.toHaveProperty('data')
  }
}

test('a path without canonical form, an unsupported header and an unknown method have their lines', async () => {
  const device = await enable(node.root)
  expect(await send('/v1/a/../b', { 'x-vault-token': 'hvs.guess' })).toBe(400)
  const parent = device.of('a/../b')
  expectLines(
    parent,
    { operation: 'read', client_token: expect.stringMatching(hidden) },
    'path cannot contain parent references',
  )
  expect(await send(`/v1/transit//${'x'.repeat(3000)}`)).toBe(400)
  const long = device.of(`transit//${'x'.repeat(3000)}`.slice(0, 1000))
  expectLines(long, { mount_point: 'transit/' }, 'the path must not contain an empty segment ("//")')
  expect(await send('/v1/transit/keys/a', { 'x-vault-namespace': 'x' })).toBe(404)
  expectLines(device.of('transit/keys/a'), { remote_address: '127.0.0.1' }, 'namespace not found')
  expect(await send('/v1/transit/keys/b', {}, 'TRACE')).toBe(405)
  expect(device.of('transit/keys/b')).toHaveLength(2)
  await device.disable()
})

test('a path under no mount has its lines, which name the caller where it has one', async () => {
  const device = await enable(node.root)
  const text = 'no handler for route "nothing/here". route entry not found.'
  expect((await node.root.get('nothing/here')).status).toBe(404)
  const lines = device.of('nothing/here')
  expect(lines.map(({ type }) => type)).toEqual(['request', 'response'])
  expect(lines[1]).toMatchObject({ error: text, auth: { display_name: 'root' } })
  expect(lines[1]?.request).not.toHaveProperty('mount_point')
  expect(await send('/v1/nothing/there')).toBe(403)
  expect(device.of('nothing/there').map(({ type }) => type)).toEqual(['request', 'response'])
  await device.disable()
})

test('a request whose mount cannot be looked up has its lines', async () => {
  const device = await enable(node.root)
  await using sql = await openSql(node.server.database.url)
  await sql.rows('RENAME TABLE mounts TO mounts_elsewhere')
  try {
    await sql.invalidate()
    expect(await send('/v1/transit/keys/a', { 'x-vault-token': node.server.rootToken })).toBe(500)
  } finally {
    await sql.rows('RENAME TABLE mounts_elsewhere TO mounts')
  }
  const shown = { operation: 'read', client_token: expect.stringMatching(hidden), remote_address: '127.0.0.1' }
  const lines = device.of('transit/keys/a')
  expectLines(lines, shown, '1 error occurred:\n\t* internal error\n\n')
  for (const { request: of } of lines) expect(of).not.toHaveProperty('mount_point')
  await done(node.root.get('sys/mounts'))
  await device.disable()
})

test('a body that cannot be read has its lines, and nothing of it is in them', async () => {
  const device = await enable(node.root)
  const text = 'failed to decode JSON input: invalid syntax'
  expectRefused(await node.root.post('transit/encrypt/a', '{"plaintext":S3CRET}'), 400, text)
  expectLines(
    device.of('transit/encrypt/a'),
    { operation: 'update', mount_point: 'transit/', mount_type: 'transit' },
    text,
  )
  expect(device.text()).not.toContain('S3CRET')
  await device.disable()
})

test('what anybody may ask at any time has none, however it fails', async () => {
  const device = await enable(node.root)
  const before = device.lines().length
  expect((await node.server.client('').get('sys/health?standbycode=x')).status).toBe(400)
  expect((await node.server.client('').get('sys/seal-status')).status).toBe(200)
  expect(device.lines()).toHaveLength(before)
  await done(node.root.get('sys/mounts'))
  expect(device.lines()).toHaveLength(before + 2)
  await device.disable()
})
