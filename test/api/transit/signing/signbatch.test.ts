import { createHash, verify } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, enveloped, expectData, expectRefused, hello, useSharedNode } from '../../node.ts'
import { bytesOf, publicKeyOf } from '../../signing.ts'

const node = useSharedNode()
let ec: string
let rsa: string
beforeAll(async () => {
  ec = await node.key({ type: 'ecdsa-p256' })
  rsa = await node.key({ type: 'rsa-2048' })
})
const post = (verb: string, name: string, body: Record<string, unknown>) =>
  node.root.post(`transit/${verb}/${name}`, body)
const tagged = expect.stringMatching(/^vault:v1:/)
const results = (body: unknown) => (body as { data: { batch_results: Record<string, string>[] } }).data.batch_results
const other = base64('other')

describe('a batch of signatures', () => {
  test('answers 200 although items fail, with version 0 for those', async () => {
    const batch_input = [{ input: hello, reference: 'a' }, { reference: 'b' }, { input: '!' }]
    expectData(await post('sign', ec, { batch_input }), {
      batch_results: [
        { key_version: 1, signature: tagged, reference: 'a' },
        { key_version: 0, error: 'missing input', reference: 'b' },
        {
          key_version: 0,
          error: 'unable to decode input as base64: illegal base64 data at input byte 0',
          reference: '',
        },
      ],
    })
    const refused = await post('sign', ec, { batch_input, partial_failure_response_code: 400 })
    expect(refused.status).toBe(400)
    expect(refused.body).toMatchObject({
      errors: [expect.stringMatching(/^2 of 3/)],
      data: { batch_results: [{}, {}, {}] },
    })
    expect((await post('sign', ec, { batch_input: [{}] })).status).toBe(400)
  })

  test('takes its fields per item, and from the request if an item lacks them', async () => {
    const batch_input = [
      { input: hello, signature_algorithm: 'pss', salt_length: 20 },
      { input: hello, algorithm: 'sha2-512' },
      { input: hello, marshaling_algorithm: 'jws', hash_algorithm: 'sha2-384', algorithm: 'sha2-224' },
    ]
    const reply = await post('sign', rsa, { batch_input, signature_algorithm: 'pkcs1v15' })
    const [first, second, third] = results(reply.body).map(({ signature }) => signature ?? '')
    const key = await publicKeyOf(node.root, rsa)
    const pss = { key, padding: 6, saltLength: 20 }
    expect(verify('sha256', Buffer.from('hello'), pss, bytesOf(first ?? ''))).toBe(true)
    expect(verify('sha512', Buffer.from('hello'), key, bytesOf(second ?? ''))).toBe(true)
    expect(verify('sha384', Buffer.from('hello'), key, bytesOf(third ?? '', 'base64url'))).toBe(true)
    const items = batch_input.map((item, index) => ({ ...item, signature: results(reply.body)[index]?.signature }))
    expectData(await post('verify', rsa, { batch_input: items, signature_algorithm: 'pkcs1v15' }), {
      batch_results: Array(3).fill({ valid: true, reference: '' }),
    })
    expectData(await post('verify', rsa, { batch_input: items }), {
      batch_results: [true, false, false].map((valid) => ({ valid, reference: '' })),
    })
  })

  test('signs each item with the version it names, and refuses the versions that may not sign', async () => {
    const name = await node.key({ type: 'ecdsa-p256' })
    for (let version = 2; version <= 3; version++) await node.root.post(`transit/keys/${name}/rotate`)
    await node.root.post(`transit/keys/${name}/config`, { min_encryption_version: 2 })
    const batch_input = [0, 1, 2, 3, 4, -1].map((key_version) => ({ input: hello, key_version }))
    const reply = await post('sign', name, { batch_input: [...batch_input, { input: hello }], key_version: 2 })
    expect(results(reply.body).map(({ key_version, error }) => error ?? key_version)).toEqual([
      3,
      'requested version for signing is less than the minimum encryption key version',
      2,
      3,
      'requested version for signing is higher than the latest key version',
      'requested version for signing is negative',
      2,
    ])
  })

  test('takes booleans as words and numbers as text, and refuses other types whole', async () => {
    const good = await post('sign', ec, { batch_input: [{ input: hello, prehashed: 'true', reference: 7 }] })
    expectData(good, { batch_results: [{ key_version: 1, signature: tagged, reference: '7' }] })
    const text = "failed to parse batch input: '[0].prehashed' expected type 'bool', got unconvertible type 'string'"
    expectRefused(await post('sign', ec, { batch_input: [{ input: hello, prehashed: 'maybe' }] }), 400, text)
    const versions = ['1', '0', '2'].map((key_version) => ({ input: hello, key_version }))
    for (const operation of ['sign', 'hmac']) {
      const items = results((await post(operation, ec, { batch_input: versions })).body)
      expect(items.map(({ error }) => error === undefined)).toEqual([true, true, false])
      // A policy reads an integer with a leading zero as octal: an ambiguous value is refused.
      const octal =
        "failed to parse batch input: '[0].key_version' expected type 'int', got unconvertible type 'string'"
      expectRefused(await post(operation, ec, { batch_input: [{ input: hello, key_version: '010' }] }), 400, octal)
    }
    const list =
      "failed to parse batch input: '[0].input' expected type 'string', got unconvertible type '[]interface {}'"
    expectRefused(await post('sign', ec, { batch_input: [{ input: [hello] }] }), 400, list)
  })

  test('takes a number for a boolean as the request does: 0 is false, any other true', async () => {
    const input = base64(createHash('sha256').update('hello').digest())
    const key = await publicKeyOf(node.root, ec)
    const prehashed = ([result]: Record<string, string>[]) =>
      verify('sha256', Buffer.from('hello'), key, bytesOf(result?.signature ?? ''))
    const spellings = [
      ...[1, 7, -1, 0.5, true, '1'].map((sent) => [sent, true] as const),
      ...[0, -0, false, '0', ''].map((sent) => [sent, false] as const),
    ]
    for (const [sent, expected] of spellings) {
      const ofItem = await post('sign', ec, { batch_input: [{ input, prehashed: sent }] })
      const ofRequest = await post('sign', ec, { batch_input: [{ input }], prehashed: sent })
      expect([ofItem.status, prehashed(results(ofItem.body))], JSON.stringify(sent)).toEqual([200, expected])
      expect([ofRequest.status, prehashed(results(ofRequest.body))], JSON.stringify(sent)).toEqual([200, expected])
    }
    for (const wrong of [[1], {}]) {
      expect((await post('sign', ec, { batch_input: [{ input, prehashed: wrong }] })).status).toBe(400)
    }
  })
})

test.each(['sign', 'hmac'])('no field is taken for unknown, by its older name neither: %s', async (verb) => {
  const item = { input: hello, algorithm: 'sha2-512', hash_algorithm: null, key_version: 1, reference: '' }
  const warnings = ['Endpoint ignored these unrecognized parameters of batch_input: [algo]']
  const both = { ...item, hash_algorithm: 'sha2-256' }
  expect((await post(verb, ec, { batch_input: [item, both] })).body).toMatchObject({ warnings: null })
  expect((await post(verb, ec, { batch_input: [item, { ...item, algo: 'x' }] })).body).toMatchObject({ warnings })
})

describe('a batch to verify', () => {
  test('shows valid for every signature, and for an HMAC only where it fits', async () => {
    const signature = (await post('sign', ec, { input: hello })).string('data.signature')
    const hmac = (await post('hmac', ec, { input: hello })).string('data.hmac')
    const both = (field: string, value: string) => [
      { input: hello, [field]: value, reference: 'good' },
      { input: other, [field]: value, reference: 'wrong' },
      { input: hello, [field]: 'x', reference: 'bad' },
    ]
    expectData(await post('verify', ec, { batch_input: both('signature', signature) }), {
      batch_results: [
        { valid: true, reference: 'good' },
        { valid: false, reference: 'wrong' },
        { valid: false, error: 'invalid signature: no prefix', reference: 'bad' },
      ],
    })
    expectData(await post('verify', ec, { batch_input: both('hmac', hmac) }), {
      batch_results: [
        { valid: true, reference: 'good' },
        { reference: 'wrong' },
        { error: 'invalid HMAC to verify: no prefix', reference: 'bad' },
      ],
    })
  })

  test.each([
    ['sign', 'signature', { valid: false, error: 'invalid signature: no prefix', reference: '' }],
    ['hmac', 'hmac', { error: 'invalid HMAC to verify: no prefix', reference: '' }],
  ])('refuses no other item for an empty value: %s', async (verb, field, fault) => {
    const good = (await post(verb, ec, { input: hello })).string(`data.${field}`)
    const batch_input = ['', good].map((value) => ({ input: hello, [field]: value }))
    expectData(await post('verify', ec, { batch_input }), { batch_results: [fault, { valid: true, reference: '' }] })
    // Outside a batch an empty one counts as absent.
    const text = "neither a 'signature' nor an 'hmac' were given to verify"
    expectRefused(await post('verify', ec, { input: hello, [field]: '' }), 400, text)
  })

  test.each([
    [[{ input: hello }], "no batch_input elements have 'signature' or 'hmac'"],
    [
      [
        { input: hello, signature: 'x' },
        { input: hello, hmac: 'x' },
      ],
      "elements of batch_input must all provide 'signature' or all provide 'hmac'",
    ],
    [
      [{ input: hello, signature: 'x', hmac: 'x' }],
      "elements of batch_input must all provide 'signature' or all provide 'hmac'",
    ],
    [[{ input: hello, signature: 'x' }, { input: hello }], "some elements of batch_input are missing 'signature'"],
    [[{ input: hello, hmac: 'x' }, { input: hello }], "some elements of batch_input are missing 'hmac'"],
    [[], 'missing batch input to process'],
  ])('%j is refused whole: %s', async (batch_input, text) => {
    expectRefused(await post('verify', ec, { batch_input }), 400, text)
  })
})

test('a batch of HMACs verifies each item with its own hash', async () => {
  const algorithms = ['sha2-224', 'sha2-512', 'sha3-384', 'sha1']
  const items = []
  for (const algorithm of algorithms) {
    items.push({
      input: hello,
      algorithm,
      hmac: (await post('hmac', ec, { input: hello, algorithm })).string('data.hmac'),
    })
  }
  const opened =
    'the HSM lacks CKM_SHA3_384_HMAC: the HMAC secret of version 1 was in the server’s memory for this request'
  expectData(
    await post('verify', ec, { batch_input: items }),
    { batch_results: Array(4).fill({ valid: true, reference: '' }) },
    [opened],
  )
  const unnamed = items.map(({ input, hmac }) => ({ input, hmac }))
  expectData(await post('verify', ec, { batch_input: unnamed, hash_algorithm: 'sha2-512' }), {
    batch_results: [false, true, false, false].map((valid) => (valid ? { valid, reference: '' } : { reference: '' })),
  })
})

test('a batch of HMACs answers 200 although items fail, and takes hash and version per item', async () => {
  const batch_input = [
    { input: hello, reference: 'a' },
    { input: hello, hash_algorithm: 'sha2-512' },
    { input: hello, algorithm: 'sha9' },
    { input: hello, key_version: 4 },
    {},
  ]
  const reply = await post('hmac', ec, { batch_input, algorithm: 'sha2-384', partial_failure_response_code: 207 })
  expect(reply.status).toBe(207)
  expect((await post('hmac', ec, { batch_input, algorithm: 'sha2-384' })).status).toBe(200)
  expect(reply.body).toEqual(
    enveloped({
      batch_results: [
        { hmac: tagged, reference: 'a' },
        { hmac: tagged, reference: '' },
        { error: 'unsupported algorithm "sha9"', reference: '' },
        { error: 'key version does not exist; latest key version is 1', reference: '' },
        { error: 'missing input for HMAC', reference: '' },
      ],
    }),
  )
  expect(
    results(reply.body)
      .slice(0, 2)
      .map(({ hmac }) => bytesOf(hmac ?? '').length),
  ).toEqual([48, 64])
})
