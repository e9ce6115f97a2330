import { expect, test } from 'vitest'
import { pack, unpack } from '../../src/hsm/session/parcel.ts'

test('what is packed shares no memory with what was given', () => {
  const iv = Buffer.from('0123456789ab')
  const { value, moved } = pack({ list: [iv], mechanism: { gcm: { iv, tagBits: 128 } }, none: undefined })
  iv.fill(0)
  const copy = unpack(value) as { list: Buffer[]; mechanism: { gcm: { iv: Buffer; tagBits: number } }; none: undefined }
  expect(copy.list[0]?.toString()).toBe('0123456789ab')
  expect(copy.mechanism.gcm).toEqual({ iv: Buffer.from('0123456789ab'), tagBits: 128 })
  expect(copy.none).toBeUndefined()
  expect(moved).toHaveLength(2)
})

test('a small view does not drag its pool to another thread', () => {
  const view = Buffer.from('pooled')
  expect(view.buffer.byteLength).toBeGreaterThan(view.length)
  expect(pack(view).moved.map((buffer) => buffer.byteLength)).toEqual([view.length])
})

test('empty byte arrays and absent values survive', () => {
  expect(unpack(pack([Buffer.alloc(0), undefined, null, 0, '', false]).value)).toEqual([
    Buffer.alloc(0),
    undefined,
    null,
    0,
    '',
    false,
  ])
})
