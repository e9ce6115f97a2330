import { describe, expect, test } from 'vitest'
import { base64, done, expectData, expectRefused, useSharedNode } from '../node.ts'

/** Numbers where the API takes text, and where it takes integers, as JSON writes them. */

const node = useSharedNode()
const post = (path: string, json: string) => node.root.post(`transit/${path}`, json)
const results = async (path: string, json: string): Promise<Record<string, unknown>[]> => {
  const { body } = await done(post(path, json))
  return (body as { data: { batch_results: Record<string, unknown>[] } }).data.batch_results
}
const beyond = ['9007199254740993', '12345678901234567890', '1000.0', '1e3', '-9007199254740993']

describe('a number beyond 2^53, or with a fraction or an exponent', () => {
  test('as reference of an item comes back digit for digit', async () => {
    const name = await node.key()
    const signer = await node.key({ type: 'ed25519' })
    const item = (reference: string) => `{"plaintext":"aGVsbG8=","input":"aGVsbG8=","reference":${reference}}`
    const json = `{"batch_input":[${beyond.map(item).join()}]}`
    const encrypted = await results(`encrypt/${name}`, json)
    expect(encrypted.map(({ reference }) => reference)).toEqual(beyond)
    for (const [path, key] of [
      ['sign', signer],
      ['hmac', name],
    ]) {
      expect((await results(`${path}/${key}`, json)).map(({ reference }) => reference)).toEqual(beyond)
    }
    const [{ ciphertext } = {}, { hmac } = {}, { signature } = {}] = await Promise.all([
      results(`encrypt/${name}`, json).then(([first]) => first),
      results(`hmac/${name}`, json).then(([first]) => first),
      results(`sign/${signer}`, json).then(([first]) => first),
    ])
    for (const [path, fields] of [
      [`decrypt/${name}`, { ciphertext }],
      [`rewrap/${name}`, { ciphertext }],
      [`verify/${name}`, { input: 'aGVsbG8=', hmac }],
      [`verify/${signer}`, { input: 'aGVsbG8=', signature }],
    ] as const) {
      const items = beyond.map((reference) => JSON.stringify(fields).replace('}', `,"reference":${reference}}`))
      const answers = await results(path, `{"batch_input":[${items.join()}]}`)
      expect([path, ...answers.map(({ reference }) => reference)]).toEqual([path, ...beyond])
    }
    const plain = await results(`encrypt/${name}`, `{"batch_input":[${item('12')},${item('1.5')},${item('"x"')}]}`)
    expect(plain.map(({ reference }) => reference)).toEqual(['12', '1.5', 'x'])
  })

  test('as input is the base64 text of its digits', async () => {
    const name = await node.key({ type: 'ed25519' })
    const signed = (input: string) => post(`sign/${name}`, `{"input":${input}}`)
    const made = (await done(signed('9007199254740993'))).string('data.signature')
    expect((await done(signed('"9007199254740993"'))).string('data.signature')).toBe(made)
    expect((await done(signed('9007199254740992'))).string('data.signature')).not.toBe(made)
    const [item] = await results(`sign/${name}`, '{"batch_input":[{"input":9007199254740993}]}')
    expect(item?.signature).toBe(made)
    const hash = await done(post('hash', '{"input":9007199254740993}'))
    expect((await done(post('hash', '{"input":"9007199254740993"}'))).string('data.sum')).toBe(hash.string('data.sum'))
    expect((await signed('1000.0')).status).toBe(400)
  })

  test.each([
    ['signature', 'sign'],
    ['hmac', 'hmac'],
  ])('as input of verify by %s is the base64 text of its digits too', async (field, path) => {
    const name = await node.key({ type: 'ed25519' })
    const [exact, rounded] = ['9007199254740993', '9007199254740992']
    const made = (await done(post(`${path}/${name}`, `{"input":${exact}}`))).string(`data.${field}`)
    const ofText = (await done(post(`${path}/${name}`, `{"input":"${exact}"}`))).string(`data.${field}`)
    expect(ofText).toBe(made)
    const item = (input: string) => `{"input":${input},"${field}":"${made}"}`
    for (const [input, valid] of [
      [exact, true],
      [`"${exact}"`, true],
      [rounded, false],
    ] as const) {
      expectData(await post(`verify/${name}`, item(input)), { valid })
      // A batch says nothing of an HMAC that does not match.
      const [checked] = await results(`verify/${name}`, `{"batch_input":[${item(input)}]}`)
      expect(checked?.valid ?? false).toBe(valid)
    }
    const [batch] = await results(`${path}/${name}`, `{"batch_input":[{"input":${exact}}]}`)
    expect(batch?.[field]).toBe(made)
  })

  test('is not an integer, and the refusal gives the reason', async () => {
    const name = await node.key()
    const refuse = async (number: string, reason: string) => {
      const text = `Field validation failed: error converting input for field "key_version": ${reason}`
      const json = `{"plaintext":${JSON.stringify(base64('a'))},"key_version":${number}}`
      expectRefused(await post(`encrypt/${name}`, json), 400, text)
    }
    await refuse('1.0', 'expected an integer without fraction or exponent')
    await refuse('1e0', 'expected an integer without fraction or exponent')
    await refuse('1.5', 'expected an integer without fraction or exponent')
    for (const number of ['9007199254740993', '"9007199254740993"', '9007199254740992', '-9007199254740993']) {
      await refuse(number, 'the number is out of range')
    }
    for (const number of ['1.0', '9007199254740993']) {
      const item = `{"plaintext":"aGVsbG8=","key_version":${number}}`
      expect((await post(`encrypt/${name}`, `{"batch_input":[${item}]}`)).status).toBe(400)
    }
    expectData(await post(`encrypt/${name}`, '{"plaintext":"aGVsbG8=","key_version":1}'), {
      ciphertext: expect.any(String),
      key_version: 1,
    })
  })

  test('meets the rules of policies as the engine takes it', async () => {
    const name = await node.key()
    const policy = `path "transit/encrypt/*" { capabilities = ["update"]
      denied_parameters = { "associated_data" = ["9007199254740993", "1000.0"] } }`
    const limited = await node.limited(policy)
    const sent = async (data: string) => {
      const body = `{"plaintext":"aGVsbG8=","associated_data":${data}}`
      return (await limited.post(`transit/encrypt/${name}`, body)).status
    }
    for (const data of ['9007199254740993', '"9007199254740993"', '1000.0', '"1000.0"'])
      expect(await sent(data)).toBe(403)
    expect(await sent('9007199254740992')).toBe(200)
  })
})
