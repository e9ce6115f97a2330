import { describe, expect, test } from 'vitest'
import type { Reply } from '../../support/client.ts'
import { expectData, expectRefused, useSharedNode } from '../node.ts'

const node = useSharedNode()
const random = (path: string, body: Record<string, unknown> = {}) => node.root.post(`transit/random${path}`, body)
const bytesOf = (reply: Reply, encoding: 'base64' | 'hex' = 'base64') =>
  Buffer.from(reply.string('data.random_bytes'), encoding)

describe('random bytes', () => {
  test('are 32 in base64 when nothing is asked for', async () => {
    const reply = await random('')
    expectData(reply, { random_bytes: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) })
    expect((await random('')).string('data.random_bytes')).not.toBe(reply.string('data.random_bytes'))
  })

  test.each([
    ['/16', {}, 16],
    ['/platform', {}, 32],
    ['/seal', { bytes: 5 }, 5],
    ['/all', { bytes: '0x10' }, 16],
    ['/platform/7', {}, 7],
    ['/seal/131072', {}, 131072],
    ['/all/1', {}, 1],
    ['/16', { bytes: 5, source: 'seal' }, 16],
    ['/seal/8', { bytes: 5, source: 'platform' }, 8],
    ['', { bytes: 9, source: 'all' }, 9],
  ])('of POST random%s %j are %i', async (path, body, count) => {
    expect(bytesOf(await random(path, body))).toHaveLength(count)
    const hex = await random(path, { ...body, format: 'hex' })
    expect(hex.string('data.random_bytes')).toMatch(/^[0-9a-f]+$/)
    expect(bytesOf(hex, 'hex')).toHaveLength(count)
  })

  test.each(['platform', 'seal', 'all'])('of %s are never all the same byte, and never repeat', async (source) => {
    const drawn = await Promise.all(Array.from({ length: 20 }, () => random(`/${source}/64`)))
    const texts = drawn.map((reply) => bytesOf(reply).toString('hex'))
    expect(new Set(texts).size).toBe(20)
    for (const reply of drawn) expect(new Set(bytesOf(reply)).size).toBeGreaterThan(20)
  })

  test.each([
    ['/0', {}, "'bytes' cannot be less than 1"],
    ['', { bytes: -1 }, "'bytes' cannot be less than 1"],
    ['/131073', {}, "'bytes' should be less than 131072"],
    ['', { bytes: 1_000_000 }, "'bytes' should be less than 131072"],
    ['/foo', {}, 'error parsing url-set byte count: strconv.Atoi: parsing "foo": invalid syntax'],
    ['/seal/1x', {}, 'error parsing url-set byte count: strconv.Atoi: parsing "1x": invalid syntax'],
    ['/foo/32', {}, 'unsupported entropy source "foo"; must be "platform" or "seal", or "all"'],
    ['', { source: 'moon' }, 'unsupported entropy source "moon"; must be "platform" or "seal", or "all"'],
    ['', { format: 'raw' }, 'unsupported encoding format "raw"; must be "hex" or "base64"'],
  ])('of POST random%s %j are refused: %s', async (path, body, text) => {
    expectRefused(await random(path, body), 400, text)
  })

  test.each([
    ['GET', 405, 'operation'],
    ['LIST', 404, 'path'],
    ['DELETE', 405, 'operation'],
  ])('are not had by %s: %i, unsupported %s', async (verb, status, what) => {
    const reply = await node.root.call(verb, 'transit/random/16')
    expectRefused(reply, status, `1 error occurred:\n\t* unsupported ${what}\n\n`)
  })
})
