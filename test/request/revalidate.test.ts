import { afterAll, beforeAll, expect, test } from 'vitest'
import { dial, hear } from '../http/wire.ts'
import { type ServedAuthority, serveAuthority } from './authority.ts'

let served: ServedAuthority
beforeAll(async () => {
  served = await serveAuthority()
})
afterAll(() => served.listener.close(1000))

const modified = 'Sun, 22 Nov 2026 08:00:00 GMT'
const earlier = 'Sun, 22 Nov 2026 07:59:59 GMT'
const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET', token = '') => {
  const reply = await served.ask(method, `/v1/${path}`, { token, headers })
  const { 'cache-control': store, etag, 'last-modified': changed, 'content-type': type } = reply.headers
  return { status: reply.status, store, etag, changed, type, text: reply.text }
}
const fresh = { store: 'public, max-age=3600', etag: '"abc"', changed: modified }
const unchanged = { ...fresh, status: 304, type: undefined, text: '' }

test('a public read has a tag, a date and a time for which it may be kept', async () => {
  expect(await ask('pki/ca')).toEqual({ ...fresh, status: 200, type: 'application/pkix-cert', text: 'DER' })
  expect(await ask('pki/cert/ca')).toMatchObject({ ...fresh, status: 200, etag: 'W/"abc"', type: 'application/json' })
})

test('an answer has one Cache-Control', async () => {
  for (const path of ['ca', 'cert/ca', 'crl', 'crl/pem', 'nothing']) {
    const client = await dial(served.port)
    client.write(`GET /v1/pki/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect((await hear(client)).match(/Cache-Control:/gi)).toEqual(['Cache-Control:'])
  }
})

test('304 has the same headers and no body', async () => {
  expect(await ask('pki/ca', { 'If-Modified-Since': modified })).toEqual(unchanged)
  expect(await ask('pki/ca', { 'If-None-Match': '"abc"' })).toEqual(unchanged)
  expect(await ask('pki/cert/ca', { 'If-None-Match': 'W/"abc"' })).toEqual({ ...unchanged, etag: 'W/"abc"' })
  expect(await ask('pki/ca', { 'If-None-Match': '"abc"' }, 'HEAD')).toEqual(unchanged)
})

test('a change, a different tag and an invalid date are 200', async () => {
  for (const headers of [
    { 'If-Modified-Since': earlier },
    { 'If-Modified-Since': 'yesterday' },
    { 'If-None-Match': '"abd"' },
    { 'If-None-Match': '"abd"', 'If-Modified-Since': modified },
  ]) {
    expect(await ask('pki/ca', headers)).toMatchObject({ status: 200, text: 'DER' })
  }
})

test('304 is on record as 304', async () => {
  await ask('pki/cert/ca', { 'If-None-Match': '*' })
  const answers = served.linesOf('pki/cert/ca').filter(({ type }) => type === 'response')
  expect(answers.at(-1)?.response?.data).toEqual({ http_status_code: 304 })
})

test('dates go through the mount’s tuning in both directions, tags and ages do not', async () => {
  expect(await ask('bare/ca', { 'If-Modified-Since': modified })).toEqual({
    ...{ ...fresh, changed: undefined },
    ...{ status: 200, type: 'application/pkix-cert', text: 'DER' },
  })
  expect(await ask('bare/ca', { 'If-None-Match': '"abc"' })).toEqual({ ...unchanged, changed: undefined })
  const halves = await serveAuthority({ config: { passthrough_request_headers: ['IF-MODIFIED-SINCE'] } })
  const half = await halves.ask('GET', '/v1/pki/ca', { token: '', headers: { 'If-Modified-Since': modified } })
  expect([half.status, half.headers['last-modified']]).toEqual([304, undefined])
  await halves.listener.close(0)
})

test('all other answers must not be kept: other status, errors, answers for a token', async () => {
  expect(await ask('pki/nothing', { 'If-None-Match': '*' })).toMatchObject({
    status: 204,
    store: 'no-store',
    etag: undefined,
  })
  expect(await ask('pki/private')).toMatchObject({ status: 403, store: 'no-store', etag: undefined })
  expect(await ask('pki/private', {}, 'GET', 'root')).toMatchObject({ status: 200, store: 'no-store', etag: 'W/"abc"' })
  expect(await ask('pki/secret', {}, 'GET', 'root')).toMatchObject({ status: 200, store: 'no-store', etag: undefined })
})

test('HEAD of a public read has its headers and no body; others do not answer it', async () => {
  for (const path of ['/v1/pki/ca', '/v1/pki/cert/ca', '/v1/pki/ocsp/a//b', '/v1/pki/nothing']) {
    const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => served.ask(method, path, { token: '' })))
    const of = (reply: typeof get) => ({ status: reply?.status, ...reply?.headers, date: '' })
    expect(of(head)).toEqual(of(get))
    expect(head?.bytes.length).toBe(0)
  }
  expect((await served.ask('HEAD', '/v1/pki/secret')).status).toBe(405)
  expect((await served.ask('HEAD', '/v1/pki/ocsp', { token: '' })).status).toBe(405)
  const [request] = served.linesOf('pki/ca').filter((line) => line.request.operation === 'header')
  expect(request?.type).toBe('request')
})

test('a public read without a token looks up none', async () => {
  served.lookups.length = 0
  for (const path of ['ca', 'cert/ca', 'ocsp/a', 'crl']) await ask(`pki/${path}`)
  await ask('pki/ca', {}, 'HEAD')
  await served.ask('POST', '/v1/pki/ocsp', { token: '', body: 'x' })
  expect(served.lookups).toEqual([])
  await ask('pki/ca', {}, 'GET', 'root')
  expect(served.lookups).toEqual(['root'])
})

test('/certs/… is the same path of the default mount, for routes, policies and audit', async () => {
  const revoked = { keys: ['pki/', 'certs/revoked'] }
  for (const path of [
    '/certs/revoked',
    '/v1/certs/revoked',
    '/v1/certs/revoked/',
    '/v1/%63erts/revoked',
    '/v1/pki/certs/revoked',
  ]) {
    expect((await served.ask('LIST', path, { token: 'limited' })).json.data).toEqual(revoked)
    expect((await served.ask('LIST', path)).json.data).toEqual(revoked)
    expect((await served.ask('GET', `${path}?list=true`)).json.data).toEqual(revoked)
  }
  expect(served.linesOf('pki/certs/revoked/').length).toBe(5 * 3 * 2)
  expect((await served.ask('LIST', '/v1/certs/other')).status).toBe(404)
  expect((await served.ask('LIST', '/v1/certs/other', { token: 'limited' })).status).toBe(403)
  expect((await served.ask('LIST', '/v1/certs')).status).toBe(404)
  expect((await served.ask('LIST', '/v1/certs//revoked')).status).toBe(400)
})

test('/certs/… without a default mount is 404 for who may ask', async () => {
  const without = await serveAuthority({ withoutPki: true })
  const reply = await without.ask('LIST', '/v1/certs/revoked')
  expect([reply.status, reply.json.errors]).toEqual([
    404,
    ['no handler for route "pki/certs/revoked/". route entry not found.'],
  ])
  expect((await without.ask('LIST', '/v1/certs/revoked', { token: '' })).status).toBe(403)
  await without.listener.close(0)
})
