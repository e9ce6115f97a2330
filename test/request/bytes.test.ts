import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileRoutes } from '../../src/request/dispatch.ts'
import type { Route } from '../../src/route.ts'
import { hmac } from '../audit/device.ts'
import { dial, hear, statuses } from '../http/wire.ts'
import { auditKey, type ServedAuthority, serveAuthority } from './authority.ts'

let served: ServedAuthority
beforeAll(async () => {
  served = await serveAuthority()
})
afterAll(() => served.listener.close(1000))

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const tooLarge = ['http: request body too large']

test.each([
  ['a DER body', Buffer.from('3003020100ff00', 'hex'), 'application/ocsp-request'],
  ['no content type', Buffer.of(0, 255, 10), undefined],
  ['broken JSON', Buffer.from('{"a":'), 'application/json'],
  ['JSON with a million openings', Buffer.from('['.repeat(2048)), 'application/json'],
  ['a form', Buffer.from('a=b&c'), 'application/x-www-form-urlencoded'],
  ['nothing', Buffer.alloc(0), 'application/ocsp-request'],
  ['the longest', Buffer.alloc(2048, 1), undefined],
])('%s reaches the route as it was sent, by POST and by PUT', async (_title, body, type) => {
  const headers: Record<string, string> = type === undefined ? {} : { 'Content-Type': type }
  for (const method of ['POST', 'PUT']) {
    const reply = await served.ask(method, '/v1/pki/ocsp', { token: '', body, headers })
    expect([reply.status, reply.bytes.equals(body)]).toEqual([200, true])
  }
})

test('bytes on record are the HMAC of their digest, and their length', async () => {
  const body = Buffer.from('a request of its own')
  await served.ask('POST', '/v1/bare/ocsp', { token: '', body })
  const [request, response] = served.linesOf('bare/ocsp')
  const content = { content_sha256: hmac(auditKey, sha256(body)), content_length: body.length }
  expect(request?.request.data).toEqual(content)
  expect(response?.request.data).toEqual(content)
  expect(response?.response?.data).toMatchObject({ http_status_code: 200, http_raw_body: expect.any(String) })
})

test('more than the route takes is 413, declared, sent or in chunks', async () => {
  const body = Buffer.alloc(2049)
  const refused = await served.ask('POST', '/v1/pki/ocsp', { token: '', body })
  expect([refused.status, refused.json.errors]).toEqual([413, tooLarge])
  expect((await served.ask('POST', '/v1/pki/import', { body: Buffer.alloc(100_000) })).json.data).toEqual({
    length: 100_000,
  })
  expect((await served.ask('POST', '/v1/pki/import', { body: Buffer.alloc(100_001) })).status).toBe(413)
  const headers = { 'Transfer-Encoding': 'chunked' }
  expect((await served.ask('POST', '/v1/pki/import', { body: Buffer.alloc(99_999), headers })).status).toBe(200)
  expect((await served.ask('POST', '/v1/pki/import', { body: Buffer.alloc(100_001), headers })).status).toBe(413)
})

test('a body far beyond the limit of the route is refused before it is read', async () => {
  const declared = await dial(served.port)
  declared.write('POST /v1/pki/ocsp HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n')
  expect(statuses(await hear(declared))).toEqual(['413'])
  const chunked = await dial(served.port)
  chunked.write('POST /v1/pki/ocsp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  // Below the listener's limit, and never ended: only the limit of the route can have refused it.
  for (let sent = 0; sent < 3; sent++) chunked.write(`8000\r\n${'x'.repeat(0x8000)}\r\n`)
  expect(statuses(await hear(chunked))).toEqual(['413'])
})

test('a stranger sends at most 64 KiB to any route', async () => {
  for (const token of ['', 'guess']) {
    expect((await served.ask('POST', '/v1/pki/import', { token, body: Buffer.alloc(65_536) })).status).toBe(403)
    const client = await dial(served.port)
    client.write('POST /v1/pki/import HTTP/1.1\r\nHost: x\r\n')
    client.write(`X-Vault-Token: ${token}\r\nContent-Length: 65537\r\n\r\n`)
    expect(statuses(await hear(client))).toEqual(['413'])
  }
})

test('other routes keep the limit of the listener, and a refused path gets its refusal', async () => {
  const body = Buffer.from(`{${' '.repeat(900_000)}`)
  for (const path of ['/v1/pki/crl', '/v1/nowhere/ocsp', '/v1/pki//ocsp']) {
    expect((await served.ask('POST', path, { body })).status).toBe(400)
  }
})

test('?help=1 describes the bytes of the route, for any body', async () => {
  const { json } = await served.ask('POST', '/v1/pki/ocsp?help=1', { body: Buffer.of(0, 255) })
  expect(json.help).toContain('Takes at most 2048 bytes of application/ocsp-request.')
  expect(json.help).toContain('Answers application/ocsp-response, without an envelope.')
})

test('declarations that contradict themselves fail at start', () => {
  const declare = (more: Partial<Route<unknown>>): Route<unknown> => ({
    ...{
      method: 'POST',
      path: 'a',
      access: 'public',
      about: 'a',
      body: Type.Object({}),
      answers: [],
      run: () => undefined,
    },
    bytes: { type: 'a/b', maxBytes: 65_536 },
    ...more,
  })
  const compiling = (more: Partial<Route<unknown>>) => () => compileRoutes([declare(more)])
  expect(compiling({})).not.toThrow()
  expect(compiling({ bytes: { type: 'a/b', maxBytes: 65_537 } })).toThrow('a public route takes 65536 bytes at most')
  expect(compiling({ method: 'GET' })).toThrow('has no body to be bytes')
  expect(compiling({ body: Type.Object({ a: Type.String() }) })).toThrow('has no fields')
})
