import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Question, type Serving, serve } from '../http/serving.ts'

let serving: Serving
beforeAll(async () => {
  serving = await serve()
})
beforeEach(() => {
  serving.shelf.names.clear()
  serving.shelf.capabilities.length = 0
})
afterAll(() => serving.listener.close(1000))

const ask = (method: string, path: string, options?: Question) => serving.ask(method, path, options)
const brief = async (method: string, path: string, options?: Question) => {
  const { status, json } = await ask(method, path, options)
  return { status, errors: json.errors }
}
const limited = { token: 'limited' }
const deniedText = '1 error occurred:\n\t* permission denied\n\n'

test('a written key is read and listed, under /v1/ and bare, by LIST and by ?list=true', async () => {
  const made = await ask('PUT', '/v1/shelf/keys/a', { body: '{"size":"0x10","derived":"t"}' })
  expect(made).toMatchObject({ status: 200, json: { data: { derived: true, name: 'a', size: 16 }, warnings: null } })
  expect((await ask('GET', '/shelf/keys/a')).json.data).toEqual({ caller: 'known', name: 'a' })
  for (const [method, path] of [
    ['LIST', '/v1/shelf/keys'],
    ['LIST', '/shelf/keys/'],
    ['GET', '/v1/shelf/keys?list=true'],
    ['GET', '/v1/shelf/keys/?list=1'],
  ] as const) {
    expect((await ask(method, path)).json.data).toEqual({ keys: ['a'] })
  }
})

test.each([
  ['a short text none', 1000, 0],
  // Before and after it is parsed, and before the answer is built and recorded.
  ['a text of megabytes four times', 2 ** 21, 4],
])('others have their turn between the steps of a request: beside %s', async (_title, length, most) => {
  const body = Buffer.from(JSON.stringify({ items: 'x'.repeat(length) }))
  const headers = { 'x-vault-token': 'root' }
  const from = { remoteAddress: '127.0.0.1', remotePort: 1, receivedAt: 0, clientCertificate: undefined }
  let turns = 0
  let timer = setImmediate(function count() {
    turns++
    timer = setImmediate(count)
  })
  const request = { id: 'i', method: 'PATCH', rawPath: '/v1/shelf/keys/a', query: '', headers, body, ...from }
  const reply = await serving.pipeline.handle(request)
  clearImmediate(timer)
  expect(turns).toBe(most)
  expect(JSON.parse(String(reply.body)).data).toEqual({ items: 'x'.repeat(length) })
})

test('every answer has no-store, its type and its length; the envelope ends in a newline', async () => {
  const { headers, text } = await ask('POST', '/v1/shelf/keys/a', { body: '{}' })
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'content-length': String(text.length),
  })
  expect(headers['strict-transport-security']).toBe(undefined)
  expect(text).toMatch(
    /^\{"request_id":"[0-9a-f-]{36}","lease_id":"","renewable":false,"lease_duration":0,"data":\{"name":"a"\},"wrap_info":null,"warnings":null,"auth":null\}\n$/,
  )
})

test('an answer without content is 204 with an empty body, and a warning of the route makes it 200', async () => {
  const silent = await ask('POST', '/v1/shelf/keys/a/config', { body: '{"unknown":1}' })
  expect([silent.status, silent.text, silent.headers['content-type']]).toEqual([204, '', undefined])
  const said = await ask('POST', '/v1/shelf/keys/a/config', { body: '{"unknown":1,"derived":true}' })
  expect([said.status, said.json.data, said.json.warnings]).toEqual([
    200,
    null,
    ['said so', 'Endpoint ignored these unrecognized parameters: [unknown]'],
  ])
})

test('unknown parameters and those the URL gives are told in warnings', async () => {
  const { json } = await ask('POST', '/v1/shelf/keys/a', { body: '{"foo":1,"bar":2,"name":"b","algorithm":"x"}' })
  expect(json.data).toEqual({ hash: 'x', name: 'a' })
  expect(json.warnings).toEqual([
    'Endpoint ignored these unrecognized parameters: [bar foo]',
    "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [name]",
  ])
})

test('a missing object needs create and an existing one update', async () => {
  const body = '{}'
  expect((await ask('POST', '/v1/shelf/keys/mine', { ...limited, body })).status).toBe(200)
  expect(await brief('POST', '/v1/shelf/keys/mine', { ...limited, body })).toEqual({
    status: 403,
    errors: [deniedText, expect.stringContaining('"update"')],
  })
  expect(await brief('POST', '/v1/shelf/keys/update', { ...limited, body })).toMatchObject({ status: 403 })
  serving.shelf.names.add('update')
  expect((await ask('POST', '/v1/shelf/keys/update', { ...limited, body })).status).toBe(200)
  expect(serving.shelf.capabilities).toEqual(['create', 'update'])
})

test('a caller without rights does not learn what exists: 403 for missing mounts, paths and methods', async () => {
  for (const [method, path] of [
    ['GET', '/v1/nomount/x'],
    ['GET', '/v1/shelf/nothing'],
    ['DELETE', '/v1/shelf/seal'],
    ['GET', '/v1/shelf/keys/forbidden'],
    ['GET', '/v1/shelf/keys/*'],
    ['GET', '/v1/empty/x'],
  ] as const) {
    const reply = await brief(method, path, limited)
    expect(reply).toEqual({ status: 403, errors: [deniedText, expect.any(String)] })
    expect(await brief(method, path, { token: '' })).toEqual({ status: 403, errors: ['permission denied'] })
    expect(await brief(method, path, { token: 'guess' })).toEqual({ status: 403, errors: ['permission denied'] })
  }
})

test('a caller with rights learns what does not exist, in the words of the reference', async () => {
  const unsupported = '1 error occurred:\n\t* unsupported path\n\n'
  expect(await brief('GET', '/v1/nomount/x')).toEqual({
    status: 404,
    errors: ['no handler for route "nomount/x". route entry not found.'],
  })
  expect(await brief('GET', '/v1/nowhere/x', limited)).toMatchObject({ status: 404 })
  expect(await brief('GET', '/v1/shelf/nothing')).toEqual({ status: 404, errors: [unsupported] })
  expect(await brief('GET', '/v1/shelf/keys/-bad-')).toEqual({ status: 404, errors: [unsupported] })
  expect(await brief('GET', '/v1/empty/x')).toEqual({ status: 404, errors: [unsupported] })
  expect(await brief('GET', '/v1/shelf/keys')).toEqual({
    status: 405,
    errors: ['1 error occurred:\n\t* unsupported operation\n\n'],
  })
  expect(await brief('GET', '/v1/shelf/keys/absent')).toEqual({ status: 404, errors: [] })
  expect(await brief('LIST', '/v1/shelf/keys')).toEqual({ status: 404, errors: [] })
})

test('a trailing slash, an encoding or a dot cannot bypass a policy', async () => {
  serving.shelf.names.add('forbidden')
  for (const path of [
    '/v1/shelf/keys/forbidden/',
    '/v1/shelf/keys/%66orbidden',
    '/shelf/keys/forbidden',
    '/%76%31/shelf/keys/forbidden',
    'http://127.0.0.1/v1/shelf/keys/forbidden',
  ]) {
    expect((await ask('GET', path)).status).toBe(200)
    expect((await ask('GET', path, limited)).status).toBe(403)
  }
  for (const path of [
    '/v1/shelf/keys/mine/../forbidden',
    '/v1/shelf/keys/mine%2f..%2fforbidden',
    '/v1/shelf//keys/forbidden',
  ]) {
    expect((await ask('GET', path, limited)).status).toBe(400)
  }
})

test('sudo is asked for beside the capability', async () => {
  expect(await brief('POST', '/v1/shelf/seal', limited)).toMatchObject({
    status: 403,
    errors: [deniedText, expect.stringContaining('"sudo"')],
  })
  expect((await ask('PUT', '/v1/shelf/seal')).status).toBe(204)
})

test('a public route answers without a token, with a bad one and while tokens cannot be looked up', async () => {
  for (const [token, who] of [
    ['', 'nobody'],
    ['guess', 'nobody'],
    ['broken', 'nobody'],
    ['limited', 'limited'],
  ] as const) {
    const { status, text } = await ask('GET', '/v1/shelf/health?haunhealhty=299', { token })
    expect([status, text]).toEqual([429, `{"caller":"${who}"}\n`])
  }
  expect((await ask('HEAD', '/v1/shelf/health', { token: '' })).status).toBe(204)
})

test('X-Vault-Token wins over Authorization, which needs its exact prefix', async () => {
  const as = (headers: Record<string, string>) =>
    ask('GET', '/v1/shelf/all', { token: '', headers }).then(({ status }) => status)
  expect(await as({ Authorization: 'Bearer root' })).toBe(200)
  expect(await as({ Authorization: 'bearer root' })).toBe(403)
  expect(await as({ Authorization: 'Basic root' })).toBe(403)
  expect(await as({ Authorization: 'Bearer root', 'X-Vault-Token': 'guess' })).toBe(403)
  expect(await as({ Authorization: 'Bearer guess', 'X-Vault-Token': 'root' })).toBe(200)
})

test('wrapping is refused, other namespaces do not exist, harmless headers change nothing', async () => {
  const as = (headers: Record<string, string>) => brief('GET', '/v1/shelf/all', { headers })
  expect(await as({ 'X-Vault-Wrap-TTL': '60' })).toMatchObject({
    status: 400,
    errors: [expect.stringContaining('wrapping')],
  })
  expect(await as({ 'X-Vault-Wrap-Format': 'jwt' })).toMatchObject({ status: 400 })
  expect(await as({ 'X-Vault-Namespace': 'team/a' })).toEqual({ status: 404, errors: ['namespace not found'] })
  for (const namespace of ['', 'root', 'root/', '/root/', '/']) {
    expect(await as({ 'X-Vault-Namespace': namespace })).toMatchObject({ status: 200 })
  }
  const harmless = { 'X-Vault-Request': 'true', 'X-Vault-Index': 'x', 'X-Vault-MFA': 'x', 'X-Forwarded-For': '1.2.3.4' }
  expect(await as(harmless)).toMatchObject({ status: 200 })
})

test('methods: PATCH by its content type, OPTIONS 400, unknown ones 405, HEAD only where it is declared or a GET is public', async () => {
  const body = '{"size":3}'
  expect((await ask('PATCH', '/v1/shelf/keys/a', { body })).json.data).toEqual({ size: 3 })
  const headers = { 'Content-Type': 'text/plain' }
  expect((await ask('PATCH', '/v1/shelf/keys/a', { body, headers })).status).toBe(415)
  expect(await brief('OPTIONS', '/v1/shelf/keys/a')).toEqual({
    status: 400,
    errors: ['cannot handle internal-only request operation'],
  })
  for (const method of ['LINK', 'TRACE', 'PROPFIND', 'SEARCH']) {
    expect(await brief(method, '/v1/shelf/keys/a')).toEqual({ status: 405, errors: [] })
  }
  expect((await ask('HEAD', '/v1/shelf/keys/a')).status).toBe(405)
  expect((await ask('HEAD', '/v1/shelf/der')).status).toBe(200)
})

test('writes to a path with a slash at the end are refused; the root is nothing', async () => {
  expect(await brief('POST', '/v1/shelf/keys/a/', { body: '{}' })).toEqual({
    status: 400,
    errors: ["cannot write to a path ending in '/'"],
  })
  for (const path of ['/', '/v1', '/v1/']) expect(await brief('GET', path)).toEqual({ status: 404, errors: [] })
})

test('a body is JSON with any content type; null and an empty body have no parameters', async () => {
  for (const body of [undefined, 'null', '', ' ']) {
    expect((await ask('PUT', '/v1/shelf/keys/a', { body })).json.data).toEqual({ name: 'a' })
  }
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  expect((await ask('POST', '/v1/shelf/keys/a', { body: '{"size":2}', headers })).json.data).toEqual({
    name: 'a',
    size: 2,
  })
  expect((await ask('POST', '/v1/shelf/keys/a', { body: 'size=2&hash=a&hash=b', headers })).json.data).toEqual({
    hash: 'a,b',
    name: 'a',
    size: 2,
  })
})

test('bad input is named by its field and never repeated', async () => {
  const bodies = [
    '{"plaintext":"S3CRET"',
    '"S3CRET"',
    '{"derived":"S3CRET"}',
    '{"size":"S3CRET"}',
    '{"size":65}',
    '{"size":1.5}',
  ]
  for (const body of bodies) {
    const { status, text } = await ask('POST', '/v1/shelf/keys/a', { body })
    expect(status).toBe(400)
    expect(text).not.toContain('S3CRET')
  }
  expect(await brief('POST', '/v1/shelf/keys/a', { body: '{"size":65}' })).toEqual({
    status: 400,
    errors: ['Field validation failed: field "size" must be at most 64'],
  })
  expect(serving.shelf.names.size).toBe(0)
})

test('the query has parameters of reads, but not of writes', async () => {
  const { json } = await ask('POST', '/v1/shelf/keys/a?size=3', { body: '{}' })
  expect(json.data).toEqual({ name: 'a' })
  expect((await ask('GET', '/v1/shelf/keys/a?x=1')).json.warnings).toEqual([
    'Endpoint ignored these unrecognized parameters: [x]',
  ])
})

test('a server fault is 500 with a fixed text; the cause is in the log, under the request’s id', async () => {
  for (const path of ['/v1/shelf/bug', '/v1/shelf/laterbug']) {
    const { status, text } = await ask('GET', path)
    expect([status, text]).toEqual([500, '{"errors":["1 error occurred:\\n\\t* internal error\\n\\n"]}\n'])
  }
  expect(
    serving.logged.filter((line) => line.includes('S3CRET') && /"requestId":"[0-9a-f-]{36}"/.test(line)).length,
  ).toBe(2)
  expect((await ask('GET', '/v1/shelf/all', { token: 'broken' })).status).toBe(500)
  expect((await ask('GET', '/v1/shelf/badheader')).status).toBe(500)
})

test('bytes go out as they are, and injected routes repeat their data at the top', async () => {
  const der = await ask('GET', '/v1/shelf/der')
  expect([der.headers['content-type'], der.headers['content-length']]).toEqual(['application/pkix-crl', '2'])
  const { json } = await ask('GET', '/v1/shelf/all')
  expect([json['a/'], json['b/'], json.data]).toEqual([2, 1, { 'a/': 2, 'b/': 1 }])
})

test('a __proto__ in a body, a query or a path pollutes nothing', async () => {
  const body =
    '{"__proto__":{"size":7},"labels":{"__proto__":"x"},"items":{"__proto__":{"size":7}},"constructor":{"a":1}}'
  const { status, text } = await ask('POST', '/v1/shelf/keys/__proto__', { body })
  expect(status).toBe(200)
  expect(text).toContain('"labels":{"__proto__":"x"}')
  expect((await ask('GET', '/v1/shelf/keys/__proto__?__proto__=1&constructor=2')).status).toBe(200)
  expect(({} as Record<string, unknown>).size).toBe(undefined)
  for (const path of ['/v1/__proto__/x', '/v1/shelf/__proto__', '/v1/shelf/constructor']) {
    expect((await ask('GET', path)).status).toBe(404)
  }
})

test('no request makes a fault of ours or hangs', async () => {
  const bits = [
    'keys',
    'a',
    ':name',
    '%2e',
    '..',
    '%00',
    '%',
    '*',
    '+',
    '~',
    'seal',
    'health',
    '%c3%a9',
    '__proto__',
    '',
  ]
  const path = fc.array(fc.constantFrom(...bits), { maxLength: 5 }).map((parts) => `/v1/shelf/${parts.join('/')}`)
  const anyPath = fc.oneof(
    path,
    fc.string({ maxLength: 30 }).map((tail) => `/${tail.replace(/[^\x21-\x7e]/g, '%')}`),
  )
  const query = fc.oneof(
    fc.constant(''),
    fc.string({ maxLength: 20 }).map((tail) => `?${tail.replace(/[^\x21-\x7e]/g, '&')}`),
  )
  const method = fc.constantFrom('GET', 'LIST', 'PUT', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'LINK', 'TRACE')
  const field = fc.constantFrom('size', 'derived', 'hash', 'algorithm', 'labels', 'items', 'name', '__proto__', 'x')
  const body = fc.oneof(
    fc.dictionary(field, fc.jsonValue({ maxDepth: 3 })).map((object) => JSON.stringify(object)),
    fc.string({ maxLength: 60 }),
    fc.constant(undefined),
  )
  const headerValue = fc.string({ maxLength: 12 }).map((value) => value.replace(/[^\x20-\x7e]/g, ''))
  const headers = fc.dictionary(
    fc.constantFrom(
      'Content-Type',
      'X-Vault-Namespace',
      'X-Vault-Wrap-TTL',
      'Authorization',
      'X-Vault-Token',
      'Accept',
    ),
    fc.oneof(headerValue, fc.constantFrom('application/x-www-form-urlencoded', 'Bearer root', 'root')),
  )
  await fc.assert(
    fc.asyncProperty(
      method,
      anyPath,
      query,
      body,
      headers,
      fc.constantFrom('root', 'limited', ''),
      async (m, p, q, b, h, token) => {
        if (/\/(bug|laterbug|badheader)/.test(p)) return
        const { status } = await ask(m, p + q, { body: b, headers: h, token })
        expect(status).toBeGreaterThanOrEqual(200)
        expect(status).toBeLessThan(500)
      },
    ),
    { numRuns: 600 },
  )
})
