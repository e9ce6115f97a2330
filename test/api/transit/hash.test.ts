import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base64, expectData, expectRefused, hello, useNode } from '../node.ts'
import { hashNames } from '../signing.ts'

const node = useNode()
const hash = (body: Record<string, unknown>, url = '') =>
  node.root.post(`transit/hash${url}`, { input: hello, ...body })
const names = hashNames.filter(([name]) => name !== 'sha1')

describe('hashing', () => {
  test.each(names)('with %s is what node:crypto says, in hex and base64', async (algorithm, node) => {
    const sum = createHash(node).update('hello').digest()
    expectData(await hash({ algorithm }), { sum: sum.toString('hex') })
    expectData(await hash({ format: 'base64' }, `/${algorithm}`), { sum: sum.toString('base64') })
  })

  test('is SHA-256 by default', async () => {
    const sum = createHash('sha256').update('hello').digest('hex')
    expectData(await hash({}), { sum })
    expectData(await hash({ algorithm: '', format: '' }), { sum })
  })

  test('prefers the algorithm in the URL to that in the body, with a warning', async () => {
    const sum = createHash('sha512').update('hello').digest('hex')
    expectData(await hash({ algorithm: 'sha2-224' }, '/sha2-512'), { sum }, [
      "Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [algorithm]",
    ])
  })

  test('takes the empty input, and a megabyte', async () => {
    expectData(await hash({ input: '' }), { sum: createHash('sha256').digest('hex') })
    const big = Buffer.alloc(1024 * 1024, 3)
    expectData(await hash({ input: base64(big) }), { sum: createHash('sha256').update(big).digest('hex') })
  })

  test.each([
    [{ input: undefined }, 'input missing'],
    [{ input: '!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ algorithm: 'sha1' }, 'unsupported algorithm sha1'],
    [{ algorithm: 'none' }, 'unsupported algorithm none'],
    [{ algorithm: 'constructor' }, 'unsupported algorithm constructor'],
    [{ format: 'x' }, 'unsupported encoding format x; must be "hex" or "base64"'],
  ])('%j is refused: %s', async (body, text) => {
    expectRefused(await hash(body), 400, text)
    expect(node.server.output()).not.toMatch(/server fault/)
  })
})
