import { beforeAll, describe, expect, test } from 'vitest'
import type { Reply } from '../../../support/client.ts'
import { base64, done, enveloped, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
let key: string
let good: string

beforeAll(async () => {
  key = await node.key()
  good = (await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello }))).string('data.ciphertext')
})

const encrypt = (body: Record<string, unknown>) => node.root.post(`transit/encrypt/${key}`, body)
const decrypt = (body: Record<string, unknown>) => node.root.post(`transit/decrypt/${key}`, body)
const tagged = expect.stringMatching(/^vault:v1:/)
const illegal = 'failed to base64-decode plaintext: illegal base64 data at input byte 0'

/** A 4xx of a batch: the results, and a text for clients that drop them. */
function expectFailed(reply: Reply, status: number, results: readonly unknown[], text: string, ...warnings: string[]) {
  expect({ status: reply.status, body: reply.body }).toEqual({
    status,
    body: { errors: [text], data: { batch_results: results }, ...(warnings.length > 0 ? { warnings } : {}) },
  })
}

describe('a batch', () => {
  test('answers one result per item in their order, each with its reference', async () => {
    const batch_input = [{ plaintext: base64('a'), reference: 'one' }, { plaintext: '' }]
    const reply = await encrypt({ batch_input })
    const results = [
      { ciphertext: tagged, key_version: 1, reference: 'one' },
      { ciphertext: tagged, key_version: 1, reference: '' },
    ]
    expectData(reply, { batch_results: results })
    const sealed = (reply.body as { data: { batch_results: { ciphertext: string }[] } }).data.batch_results
    const items = sealed.map(({ ciphertext }, index) => ({ ciphertext, reference: `r${index}` }))
    expectData(await decrypt({ batch_input: items }), {
      batch_results: [
        { plaintext: base64('a'), reference: 'r0' },
        { plaintext: '', reference: 'r1' },
      ],
    })
  })

  test('takes thousands of items', async () => {
    const texts = Array.from({ length: 3000 }, (_, index) => base64(`${index}`))
    const { body } = await encrypt({ batch_input: texts.map((plaintext) => ({ plaintext })) })
    const opened = await decrypt({ batch_input: (body as { data: { batch_results: unknown[] } }).data.batch_results })
    // A ciphertext names its version.
    expectData(opened, { batch_results: texts.map((plaintext) => ({ plaintext, reference: '' })) }, [
      'Endpoint ignored these unrecognized parameters of batch_input: [key_version]',
    ])
  })

  test('ignores the input of the request itself, and falls back to its other fields', async () => {
    const associated_data = base64('aad')
    const reply = await encrypt({
      plaintext: '!',
      associated_data,
      key_version: 1,
      batch_input: [{ plaintext: hello }],
    })
    const [result] = (reply.body as { data: { batch_results: { ciphertext: string }[] } }).data.batch_results
    const ciphertext = result?.ciphertext
    expectData(await decrypt({ ciphertext, associated_data }), { plaintext: hello })
    const items = [{ ciphertext }, { ciphertext, associated_data: base64('other') }]
    expectFailed(
      await decrypt({ ciphertext: 'x', associated_data, batch_input: items }),
      400,
      [
        { plaintext: hello, reference: '' },
        { plaintext: '', error: 'cipher: message authentication failed', reference: '' },
      ],
      '1 of 2 batch items failed; item 1: cipher: message authentication failed',
    )
  })

  test('warns once of faults that many items share', async () => {
    const nonce = base64(Buffer.alloc(12))
    const reply = await encrypt({ batch_input: Array(50).fill({ plaintext: hello, nonce }) })
    expect(reply.body).toMatchObject({ warnings: ['the nonce was not used: this key makes its own'] })
  })

  test('warns once of members that no field reads, by their names', async () => {
    const items: Record<string, unknown>[] = [{ key_versoin: 2, reference: 'r' }, {}]
    items.push({ Context: null, key_versoin: 1 }, { toString: 1 })
    const reply = await encrypt({ batch_input: items.map((item) => ({ plaintext: hello, ...item })) })
    const result = { ciphertext: tagged, key_version: 1 }
    expectData(reply, { batch_results: ['r', '', '', ''].map((reference) => ({ ...result, reference })) }, [
      'Endpoint ignored these unrecognized parameters of batch_input: [Context key_versoin toString]',
    ])
  })

  test('does not send a flood of names back whole', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `${1000 + index}${'x'.repeat(index < 3 ? 5000 : 0)}`)
    const item = (some: readonly string[]) =>
      Object.fromEntries([['plaintext', hello], ...some.map((name) => [name, 1])])
    const few = await encrypt({ batch_input: names.slice(0, 3).map((name) => item([name])) })
    const shown = names.slice(0, 3).map((name) => `${name.slice(0, 100)}…`)
    expect(few.body).toMatchObject({
      warnings: [`Endpoint ignored these unrecognized parameters of batch_input: [${shown.join(' ')}]`],
    })
    for (const batch_input of [names.map((name) => item([name])), [item(names)]]) {
      const { warnings } = (await encrypt({ batch_input })).body as { warnings: string[] }
      const [, repeated = ''] = /^Endpoint .* of batch_input: \[(.*)\]$/.exec(warnings.join('\n')) ?? []
      expect(repeated.split(' ')).toHaveLength(100)
    }
  })
})

describe('a batch in which items fail', () => {
  const mixed = { batch_input: [{ plaintext: '!', reference: 'bad' }, { plaintext: hello }] }
  const results = [
    { error: illegal, reference: 'bad' },
    { ciphertext: tagged, key_version: 1, reference: '' },
  ]
  const text = `1 of 2 batch items failed; item 0: ${illegal}`

  test('is 400 with the results of the others', async () => {
    expectFailed(await encrypt(mixed), 400, results, text)
  })

  test('has the warnings of the request, whatever its status', async () => {
    const ignored = {
      batch_input: [
        { plaintext: '!', reference: 'bad' },
        { plaintext: hello, key_versoin: 1 },
      ],
      key_versoin: 1,
    }
    const warnings = [
      'Endpoint ignored these unrecognized parameters of batch_input: [key_versoin]',
      'Endpoint ignored these unrecognized parameters: [key_versoin]',
    ]
    expectFailed(await encrypt(ignored), 400, results, text, ...warnings)
    expectFailed(await encrypt({ ...ignored, partial_failure_response_code: 404 }), 404, results, text, ...warnings)
    const accepted = await encrypt({ ...ignored, partial_failure_response_code: 207 })
    expect(accepted.body).toEqual(enveloped({ batch_results: results }, warnings))
    // Without results there is nothing that they would be about.
    const refused = await encrypt({ ...ignored, batch_input: [{ plaintext: hello, key_version: 'x' }] })
    expect(Object.keys(refused.body as object)).toEqual(['errors'])
  })

  test.each([200, 202, 207, 299])('is %i where the request says so, without errors', async (code) => {
    const reply = await encrypt({ ...mixed, partial_failure_response_code: code })
    expect(reply.status).toBe(code)
    expect(reply.body).toEqual(enveloped({ batch_results: results }))
  })

  test.each([404, 429, 503])('is %i where the request says so, with errors', async (code) => {
    expectFailed(await encrypt({ ...mixed, partial_failure_response_code: code }), code, results, text)
  })

  test.each([0, 1, 100, 199, 204, 205, 304, 600, -200])(
    'is 400 where the request says %i, with a warning',
    async (code) => {
      const warning = 'invalid HTTP response code override from partial_failure_response_code, reverting to 400'
      expectFailed(await encrypt({ ...mixed, partial_failure_response_code: code }), 400, results, text, warning)
    },
  )

  test('is 400 when all of them do, whatever code the request gives', async () => {
    const body = { batch_input: [{ ciphertext: 'x' }, { ciphertext: '' }], partial_failure_response_code: 200 }
    const failed = [
      { plaintext: '', error: 'invalid ciphertext: no prefix', reference: '' },
      { plaintext: '', error: 'missing ciphertext to decrypt', reference: '' },
    ]
    expectFailed(await decrypt(body), 400, failed, '2 of 2 batch items failed; item 0: invalid ciphertext: no prefix')
  })
})

describe('a batch of the wrong form is refused whole', () => {
  test.each([
    ['x', 'failed to parse batch input: source data must be an array or slice, got string'],
    [
      { plaintext: hello },
      'failed to parse batch input: source data must be an array or slice, got map[string]interface {}',
    ],
    [7, 'failed to parse batch input: source data must be an array or slice, got json.Number'],
    [[], 'missing batch input to process'],
    [['x'], "failed to parse batch input: [0] expected a map, got 'string'"],
    [[{ plaintext: hello }, {}], "failed to parse batch input: '[1].plaintext' missing plaintext to encrypt"],
    [[{ plaintext: null }], "failed to parse batch input: '[0].plaintext' missing plaintext to encrypt"],
    [
      [{ plaintext: 5 }, { plaintext: hello, key_version: '1' }],
      "failed to parse batch input: '[0].plaintext' expected type 'string', got unconvertible type 'json.Number'\n'[1].key_version' expected type 'int', got unconvertible type 'string'",
    ],
    [
      [{ plaintext: hello, context: base64('x') }, { plaintext: hello }],
      'context should be set either in all the request blocks or in none',
    ],
  ])('%j: %s', async (batch_input, text) => {
    expectRefused(await encrypt({ batch_input }), 400, text)
  })

  test('and the text stays short where every item is wrong', async () => {
    const reply = await encrypt({ batch_input: Array(1000).fill({}) })
    expect(reply.status).toBe(400)
    expect(reply.text).toMatch(/and 980 more/)
    expect(reply.text.length).toBeLessThan(3000)
  })

  test('or when decrypt gets no ciphertext', async () => {
    const text = "failed to parse batch input: '[0].ciphertext' missing ciphertext to decrypt"
    expectRefused(await decrypt({ batch_input: [{ reference: 'r' }] }), 400, text)
    expect(good).toMatch(/^vault:/)
  })
})
