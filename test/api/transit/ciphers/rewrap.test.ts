import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, enveloped, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
let key: string
let old: string

beforeAll(async () => {
  key = await node.key()
  old = (await done(node.root.post(`transit/encrypt/${key}`, { plaintext: hello }))).string('data.ciphertext')
  await done(node.root.post(`transit/keys/${key}/rotate`))
})

const rewrap = (body: Record<string, unknown>) => node.root.post(`transit/rewrap/${key}`, body)
const decrypt = (body: Record<string, unknown>) => node.root.post(`transit/decrypt/${key}`, body)
const tagged = (version: number) => expect.stringMatching(`^vault:v${version}:`)

describe('rewrapping', () => {
  test('re-encrypts an older ciphertext under the latest version, and shows no plaintext', async () => {
    const reply = await rewrap({ ciphertext: old })
    expectData(reply, { ciphertext: tagged(2), key_version: 2 })
    expect(reply.text).not.toContain(hello)
    expectData(await decrypt({ ciphertext: reply.string('data.ciphertext') }), { plaintext: hello })
  })

  test('makes a new ciphertext also where it is the latest already', async () => {
    const first = (await rewrap({ ciphertext: old })).string('data.ciphertext')
    const second = (await rewrap({ ciphertext: first })).string('data.ciphertext')
    expect(second).not.toBe(first)
    expectData(await decrypt({ ciphertext: second }), { plaintext: hello })
  })

  test('to a version that is named uses that', async () => {
    expectData(await rewrap({ ciphertext: old, key_version: 1 }), { ciphertext: tagged(1), key_version: 1 })
    const text = 'requested version for encryption is higher than the latest key version'
    expectRefused(await rewrap({ ciphertext: old, key_version: 3 }), 400, text)
  })

  test('keeps associated data', async () => {
    const associated_data = base64('aad')
    const sealed = await node.root.post(`transit/encrypt/${key}`, { plaintext: hello, associated_data })
    const ciphertext = sealed.string('data.ciphertext')
    expectRefused(await rewrap({ ciphertext }), 400, 'cipher: message authentication failed')
    const again = (await rewrap({ ciphertext, associated_data })).string('data.ciphertext')
    expectData(await decrypt({ ciphertext: again, associated_data }), { plaintext: hello })
    expectRefused(await decrypt({ ciphertext: again }), 400, 'cipher: message authentication failed')
  })

  test('of a batch answers 200 although items fail, or the code that the request gives', async () => {
    const batch_input = [
      { ciphertext: old, reference: 'a' },
      { ciphertext: 'x', reference: 'b' },
    ]
    const results = [
      { ciphertext: tagged(2), key_version: 2, reference: 'a' },
      { error: 'invalid ciphertext: no prefix', reference: 'b' },
    ]
    expectData(await rewrap({ batch_input }), { batch_results: results })
    const accepted = await rewrap({ batch_input, partial_failure_response_code: 202 })
    expect(accepted.status).toBe(202)
    expect(accepted.body).toEqual(enveloped({ batch_results: results }))
    const refused = await rewrap({ batch_input, partial_failure_response_code: 400 })
    expect(refused.body).toEqual({ errors: [expect.stringMatching(/^1 of 2/)], data: { batch_results: results } })
  })

  test('of a batch in which every item fails is 400', async () => {
    const reply = await rewrap({ batch_input: [{ ciphertext: 'x' }] })
    expect(reply.status).toBe(400)
    expect(reply.body).toMatchObject({ data: { batch_results: [{ error: 'invalid ciphertext: no prefix' }] } })
    const empty = await rewrap({ batch_input: [{}] })
    expect(empty.status).toBe(400)
    expect(empty.body).toMatchObject({ data: { batch_results: [{ error: 'missing ciphertext to decrypt' }] } })
  })

  test('takes versions per item', async () => {
    const batch_input = [{ ciphertext: old, key_version: 1 }, { ciphertext: old, key_version: 2 }, { ciphertext: old }]
    const reply = await rewrap({ batch_input, key_version: 1 })
    expect(reply.body).toMatchObject({
      data: { batch_results: [{ key_version: 1 }, { key_version: 2 }, { key_version: 1 }] },
    })
  })

  test('of a batch with an item without ciphertext rewraps the others', async () => {
    const batch_input = [{ ciphertext: old }, { reference: 'b' }, { ciphertext: null }]
    const error = 'missing ciphertext to decrypt'
    expectData(await rewrap({ batch_input }), {
      batch_results: [
        { ciphertext: tagged(2), key_version: 2, reference: '' },
        { error, reference: 'b' },
        { error, reference: '' },
      ],
    })
  })

  test.each([
    [{}, 'missing ciphertext to decrypt'],
    [{ ciphertext: 'vault:v1:AAAA' }, 'invalid ciphertext length'],
    [{ batch_input: [] }, 'missing batch input to process'],
    [
      { batch_input: [{ ciphertext: 5 }] },
      "failed to parse batch input: '[0].ciphertext' expected type 'string', got unconvertible type 'json.Number'",
    ],
  ])('%j is refused: %s', async (body, text) => {
    expectRefused(await rewrap(body), 400, text)
  })

  test('with a key that does not exist is refused', async () => {
    expectRefused(await node.root.post('transit/rewrap/nokey', { ciphertext: old }), 400, 'encryption key not found')
  })
})
