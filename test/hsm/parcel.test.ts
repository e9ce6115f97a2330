import { expect, test } from 'vitest'
import { pack, unpack, wipe } from '../../src/hsm/session/parcel.ts'

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

test('what has no more use is wiped, wherever it lies, and what was packed of it stays', () => {
  const value = { key: Buffer.from('secret'), list: [Buffer.from('one'), undefined, { deep: new Uint8Array([1, 2]) }] }
  const parcel = pack(value)
  wipe(value)
  expect(value).toEqual({ key: Buffer.alloc(6), list: [Buffer.alloc(3), undefined, { deep: new Uint8Array(2) }] })
  expect(unpack(parcel.value)).toEqual({
    key: Buffer.from('secret'),
    list: [Buffer.from('one'), undefined, { deep: Buffer.from([1, 2]) }],
  })
})
