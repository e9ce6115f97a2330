import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, fresh, hello, useSharedNode } from '../../node.ts'

const node = useSharedNode()
const context = base64('c')
const encrypt = (name: string, body: Record<string, unknown>) => node.root.post(`transit/encrypt/${name}`, body)
const sealed = async (name: string, body: Record<string, unknown>) =>
  (await done(encrypt(name, body))).string('data.ciphertext')

describe.each(['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'])('a convergent key of type %s', (type) => {
  let name: string
  beforeAll(async () => {
    name = await node.key({ type, derived: true, convergent_encryption: true })
  })

  test('gives equal ciphertexts for equal plaintexts in equal contexts, and others for others', async () => {
    const first = await sealed(name, { plaintext: hello, context })
    expect(await sealed(name, { plaintext: hello, context })).toBe(first)
    expect(await sealed(name, { plaintext: hello, context: base64('d') })).not.toBe(first)
    const longer = await sealed(name, { plaintext: base64('hello!'), context })
    expect(longer.slice(0, 25)).not.toBe(first.slice(0, 25))
    const opened = await node.root.post(`transit/decrypt/${name}`, { ciphertext: first, context })
    expectData(opened, { plaintext: hello })
  })

  test('takes no part of the nonce from associated data', async () => {
    const nonceOf = (ciphertext: string) => ciphertext.split(':')[2]?.slice(0, 16)
    const first = await sealed(name, { plaintext: hello, context })
    const second = await sealed(name, { plaintext: hello, context, associated_data: base64('a') })
    expect(second).not.toBe(first)
    expect(nonceOf(second)).toBe(nonceOf(first))
  })

  test('warns of associated data, and of none when there is none, and decrypts both', async () => {
    const shared =
      'associated_data is not part of the nonce of a convergent key: messages of one context that differ in it alone share a nonce'
    for (const [associated_data, warnings] of [
      [base64('a'), [shared]],
      ['', null],
      [undefined, null],
    ] as const) {
      const reply = await encrypt(name, { plaintext: hello, context, associated_data })
      expectData(reply, { ciphertext: expect.stringMatching(/^vault:v1:/), key_version: 1 }, warnings)
      const asked = { ciphertext: reply.string('data.ciphertext'), context, associated_data }
      expectData(await node.root.post(`transit/decrypt/${name}`, asked), { plaintext: hello })
    }
  })

  test('shows its way of convergence', async () => {
    const { body } = await node.root.get(`transit/keys/${name}`)
    expect(body).toMatchObject({ data: { convergent_encryption: true, convergent_encryption_version: -1 } })
  })

  test('is still convergent after rotation, and rewrap converges too', async () => {
    const rotating = await node.key({ type, derived: true, convergent_encryption: true })
    const first = await sealed(rotating, { plaintext: hello, context })
    await done(node.root.post(`transit/keys/${rotating}/rotate`))
    const second = await sealed(rotating, { plaintext: hello, context })
    expect(second).toMatch(/^vault:v2:/)
    expect(await sealed(rotating, { plaintext: hello, context, key_version: 1 })).toBe(first)
    const rewrapped = await node.root.post(`transit/rewrap/${rotating}`, { ciphertext: first, context })
    expectData(rewrapped, { ciphertext: second, key_version: 2 })
  })
})

describe('a batch', () => {
  /**
   * Items with every mixture of good and bad fields; all with a context, since a batch has it in all items or in none.
   */
  const item = fc.record(
    {
      plaintext: fc.constantFrom(hello, '', 'aGk', base64('other')),
      context: fc.constantFrom(context, base64('d'), '!'),
      nonce: fc.constantFrom(base64(Buffer.alloc(12)), 'AAAA', '_'),
      associated_data: fc.constantFrom('', base64('a'), '?'),
      key_version: fc.constantFrom(0, 1, 2, 3, -1),
    },
    { requiredKeys: ['plaintext', 'context'] },
  )

  test('answers every item as if it were alone, whatever its neighbours are', async () => {
    const name = await node.key({ derived: true, convergent_encryption: true })
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const items = fc.sample(item, { numRuns: 80, seed: 6 })
    const batch = await encrypt(name, { batch_input: items, partial_failure_response_code: 200 })
    const results = (batch.body as { data: { batch_results: Record<string, unknown>[] } }).data.batch_results
    expect(new Set(results.map((result) => 'error' in result))).toEqual(new Set([true, false]))
    for (const [index, alone] of items.entries()) {
      const { body } = await encrypt(name, alone)
      const { data, errors } = body as { data?: object; errors?: string[] }
      expect(results[index]).toEqual({ ...(errors ? { error: errors[0] } : data), reference: '' })
    }
  })

  test('of anything comes back through decrypt, also after rotation and rewrapping', async () => {
    const post = (verb: string, batch_input: readonly unknown[]) =>
      done(node.root.post(`transit/${verb}/${name}`, { batch_input }))
    const results = ({ body }: { body: unknown }) =>
      (body as { data: { batch_results: { ciphertext: string; plaintext: string }[] } }).data.batch_results
    const name = await node.key({ derived: true, convergent_encryption: true })
    const bytes = fc.uint8Array({ maxLength: 300 }).map(base64)
    const wanted = fc.sample(
      fc.record({
        plaintext: bytes,
        context: fc.uint8Array({ minLength: 1, maxLength: 100 }).map(base64),
        associated_data: bytes,
      }),
      { numRuns: 300, seed: 6 },
    )
    const sealed = results(await post('encrypt', wanted))
    await done(node.root.post(`transit/keys/${name}/rotate`))
    const opening = (ciphertexts: readonly { ciphertext: string }[]) =>
      ciphertexts.map(({ ciphertext }, index) => ({ ...wanted[index], ciphertext }))
    const rewrapped = results(await post('rewrap', opening(sealed)))
    expect(rewrapped.every(({ ciphertext }) => ciphertext.startsWith('vault:v2:'))).toBe(true)
    for (const ciphertexts of [sealed, rewrapped]) {
      const opened = results(await post('decrypt', opening(ciphertexts)))
      expect(opened.map(({ plaintext }) => plaintext)).toEqual(wanted.map(({ plaintext }) => plaintext))
    }
  })
})

describe('a nonce for a convergent key', () => {
  test('changes nothing and is warned of', async () => {
    const name = await node.key({ derived: true, convergent_encryption: true })
    const nonce = base64(Buffer.alloc(12, 7))
    const reply = await encrypt(name, { plaintext: hello, context, nonce })
    expectData(reply, { ciphertext: await sealed(name, { plaintext: hello, context }), key_version: 1 }, [
      'the nonce was not used: this key makes its own',
    ])
    const text = 'base64-decoded nonce must be 12 bytes long but given 13 bytes'
    expectRefused(await encrypt(name, { plaintext: hello, context, nonce: base64(Buffer.alloc(13)) }), 400, text)
  })
})

test('convergence needs derivation, and a type that encrypts', async () => {
  const name = fresh('k')
  const create = (body: Record<string, unknown>) => node.root.post(`transit/keys/${name}`, body)
  const text = 'convergent encryption requires derivation to be enabled'
  expectRefused(await create({ convergent_encryption: true }), 400, text)
  expectRefused(
    await create({ type: 'ed25519', derived: true, convergent_encryption: true }),
    400,
    'convergent encryption not supported for keys of type ed25519',
  )
  expect((await node.root.get(`transit/keys/${name}`)).status).toBe(404)
})
