import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ApiError } from '../../src/errors.ts'
import { createLogTo } from '../../src/log.ts'

/** Every line that `write` makes, in one text. */
function logged(write: (log: ReturnType<typeof createLogTo>) => void): string {
  let text = ''
  write(createLogTo({ write: (line) => (text += line) }, 'trace', { process: 'test' }))
  return text
}

const canary = 'c4n4ry-9f31'

describe('a secret never reaches the log', () => {
  test.each([
    ['at the top', { plaintext: canary }],
    ['nested deep', { request: { body: { items: [{ data: { plaintext: canary } }] } } }],
    [
      'under a spelling of its own',
      { clientToken: canary, 'X-Vault-Token': canary, soPin_secret: canary, PIN: canary },
    ],
    ['in headers', { headers: { authorization: `Bearer ${canary}`, cookie: canary } }],
    ['as bytes', { value: Buffer.from(canary), view: new Uint8Array(Buffer.from(canary)) }],
    ['in a Map or a Set', { map: new Map([['a', canary]]), set: new Set([canary]) }],
    ['in a batch', { batch_results: [{ plaintext: canary }], batch_input: canary }],
  ])('%s', (_where, fields) => {
    expect(logged((log) => log.info(fields, 'text'))).not.toContain(canary)
  })

  test('in the results that an error carries for its client', () => {
    const error = new ApiError(500, 'some items failed', { data: { batch_results: [{ plaintext: canary }] } })
    const line = logged((log) => log.warn({ err: error }, 'text'))
    expect(line).not.toContain(canary)
    expect(JSON.parse(line)).toMatchObject({ err: { type: 'ApiError', message: 'some items failed', status: 500 } })
  })

  test('in the properties of a cause, however far down', () => {
    const driver = Object.assign(new Error('duplicate entry'), { sql: `INSERT '${canary}'`, parameters: [canary] })
    const error = new Error('outer', { cause: new AggregateError([driver], 'middle', { cause: driver }) })
    const line = logged((log) => log.error({ err: error, error }, 'text'))
    expect(line).not.toContain(canary)
    expect(JSON.parse(line).err.cause.cause.message).toBe('duplicate entry')
  })

  test('as a credential within a text, by its form', () => {
    const credential = `hvs.${'a1B2'.repeat(8)}`
    const error = new Error(`no route for auth/token/lookup/${credential}`)
    const line = logged((log) => log.warn({ path: `auth/token/lookup/${credential}?x`, err: error }, 'text'))
    expect(line).not.toContain('a1B2a1B2')
    expect(line).toContain('hvs.[redacted]?x')
  })

  test('wherever it hides under a secret name', () => {
    const nested = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'medium' },
        fc.constant({ client_token: canary }),
        fc.constant(Buffer.from(canary)),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('tree'), { maxKeys: 3 }),
      ),
    })).tree
    fc.assert(
      fc.property(nested, (value) => {
        expect(logged((log) => log.info({ value }, 'text'))).not.toContain(canary)
      }),
    )
  })
})

test('harmless fields stay readable', () => {
  const fields = {
    requestId: 'r',
    keyId: 'k',
    worker: 3,
    when: new Date(0),
    big: 5n,
    bytes: Buffer.alloc(3),
    none: null,
  }
  expect(JSON.parse(logged((log) => log.info(fields, 'text')))).toMatchObject({
    ...{
      requestId: 'r',
      keyId: 'k',
      worker: 3,
      when: '1970-01-01T00:00:00.000Z',
      big: '5',
      bytes: '[3 bytes]',
      none: null,
    },
    ...{ msg: 'text', level: 30, process: 'test', pid: process.pid },
  })
})

test('a value that contains itself ends', () => {
  const round: Record<string, unknown> = {}
  round.self = round
  expect(logged((log) => log.info(round, 'text'))).toContain('[deeper]')
})
