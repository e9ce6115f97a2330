import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError, absent } from '../../src/errors.ts'
import { envelope, errorReply, noWarnings } from '../../src/request/envelope.ts'
import { Answer } from '../../src/route.ts'

test('the envelope has every key in the reference’s order, sorted data and one newline', () => {
  expect(envelope('id', { b: 1, a: { d: 1, c: 2 } }, noWarnings, false)).toEqual({
    status: 200,
    headers: ['Cache-Control', 'no-store', 'Content-Type', 'application/json'],
    body: '{"request_id":"id","lease_id":"","renewable":false,"lease_duration":0,"data":{"a":{"d":1,"c":2},"b":1},"wrap_info":null,"warnings":null,"auth":null}\n',
  })
})

test('an answer without content is 204 without a body, for any parameters', () => {
  expect(envelope('id', undefined, { parameters: ['Endpoint ignored …'], route: [] }, false)).toEqual({
    status: 204,
    headers: ['Cache-Control', 'no-store'],
    body: '',
  })
})

test('a warning of the route itself makes a body', () => {
  const reply = envelope('id', undefined, { parameters: ['ignored'], route: ['forced to 1'] }, false)
  expect(reply.status).toBe(200)
  expect(JSON.parse(String(reply.body))).toMatchObject({ data: null, warnings: ['forced to 1', 'ignored'] })
})

test('data with a text of megabytes reads as JSON.stringify writes it', () => {
  const long = 'x'.repeat(2 ** 16 + 1)
  const members = fc.dictionary(
    fc.string(),
    fc.oneof(
      fc.jsonValue(),
      fc.string().map((text) => long + text),
    ),
  )
  fc.assert(
    fc.property(members, fc.string({ unit: 'binary' }), (some, end) => {
      const data = { ...some, long: long + end, none: undefined }
      const { body } = envelope('id', data, noWarnings, false)
      const sorted = Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
      expect(String(body)).toContain(`"data":${JSON.stringify(sorted)},"wrap_info"`)
    }),
  )
})

test('injected routes repeat data at the top, and never over the envelope’s own keys', () => {
  const reply = envelope('id', { 'sys/': { x: 1 }, auth: 7, data: 8, 'a/': undefined }, noWarnings, true)
  expect(JSON.parse(String(reply.body))).toEqual({
    request_id: 'id',
    lease_id: '',
    renewable: false,
    lease_duration: 0,
    data: { 'sys/': { x: 1 }, auth: 7, data: 8 },
    wrap_info: null,
    warnings: null,
    auth: null,
    'sys/': { x: 1 },
  })
  expect(String(reply.body)).toMatch(/"auth":null,"sys\/":\{"x":1\}\}\n$/)
})

test('an Answer can be bare, raw, signed in, of another status, and without content', () => {
  expect(envelope('id', new Answer({ status: 503, bare: { sealed: true } }), noWarnings, false)).toMatchObject({
    status: 503,
    body: '{"sealed":true}\n',
  })
  expect(
    envelope('id', new Answer({ raw: { type: 'application/pkix-cert', body: Buffer.of(1) } }), noWarnings, false),
  ).toEqual({
    status: 200,
    headers: ['Cache-Control', 'no-store', 'Content-Type', 'application/pkix-cert'],
    body: Buffer.of(1),
  })
  const signedIn = envelope('id', new Answer({ auth: { client_token: 'x' }, status: 202 }), noWarnings, false)
  expect([signedIn.status, JSON.parse(String(signedIn.body)).auth]).toEqual([202, { client_token: 'x' }])
  expect(envelope('id', new Answer({ status: 304, headers: { 'Last-Modified': 'x' } }), noWarnings, false)).toEqual({
    status: 304,
    headers: ['Cache-Control', 'no-store', 'Last-Modified', 'x'],
    body: '',
  })
})

test('errors go out in both styles, and a failed batch with its data', () => {
  expect(errorReply(absent()).body).toBe('{"errors":[]}\n')
  expect(errorReply(new ApiError(400, 'no')).body).toBe('{"errors":["no"]}\n')
  expect(errorReply(new ApiError(404, 'a', { style: 'list' })).body).toBe(
    '{"errors":["1 error occurred:\\n\\t* a\\n\\n"]}\n',
  )
  expect(errorReply(new ApiError(400, ['a', 'b'], { style: 'list' })).body).toBe(
    '{"errors":["2 errors occurred:\\n\\t* a\\n\\t* b\\n\\n"]}\n',
  )
  const batch = errorReply(
    new ApiError(400, 'all failed', { data: { batch_results: [{ error: 'x' }] }, retryAfterSeconds: 1 }),
  )
  expect(batch.body).toBe('{"errors":["all failed"],"data":{"batch_results":[{"error":"x"}]}}\n')
  expect(batch.headers.slice(-2)).toEqual(['Retry-After', '1'])
  const warned = errorReply(new ApiError(400, 'no', { data: { a: 1 } }), ['ignored'])
  expect(warned.body).toBe('{"errors":["no"],"data":{"a":1},"warnings":["ignored"]}\n')
})
