import { expect, test } from 'vitest'
import { remembering } from '../../src/x509/lint/remembering.ts'

const reader = () => {
  const reads: string[] = []
  const read = remembering((value) => {
    reads.push(value.toString())
    return value.subarray(1)
  })
  return { read, reads }
}

test('reads a value once as long as the same bytes come', () => {
  const { read, reads } = reader()
  const results = ['ab', 'ab', 'ac', 'ab'].map((text) => read(Buffer.from(text)).toString())
  expect(results).toEqual(['b', 'b', 'c', 'b'])
  expect(reads).toEqual(['ab', 'ac', 'ab'])
})

test('neither sees a value that is overwritten afterwards, nor returns a part of it', () => {
  const { read, reads } = reader()
  const value = Buffer.from('ab')
  const result = read(value)
  value.write('xy')
  expect(result.toString()).toBe('b')
  expect(read(value).toString()).toBe('y')
  expect(read(Buffer.from('ab')).toString()).toBe('b')
  expect(reads).toEqual(['ab', 'xy', 'ab'])
})

test('remembers nothing of a value that cannot be read', () => {
  const read = remembering((value) => {
    if (value.length === 0) throw new Error('empty')
    return value.length
  })
  expect(() => read(Buffer.alloc(0))).toThrow('empty')
  expect(() => read(Buffer.alloc(0))).toThrow('empty')
  expect(read(Buffer.alloc(1))).toBe(1)
})
