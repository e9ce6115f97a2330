import { expect, test } from 'vitest'
import { formatSerial, parseSerial } from '../../../src/engines/pki/certificates/serial.ts'

test.each([
  ['1a:2B:3c', '1a2b3c'],
  ['1A-2b-3C', '1a2b3c'],
  ['00', '00'],
  ['0f:00', '0f00'],
  [Array(20).fill('ff').join(':'), 'ff'.repeat(20)],
])('%s is a serial', (text, serial) => {
  expect(parseSerial(text)).toBe(serial)
})

test.each([
  '',
  ':',
  '1a:',
  ':1a',
  '1a2b',
  '1',
  '1a:2',
  '1g',
  '1a::2b',
  '1a 2b',
  '1a:2b\n',
  Array(21).fill('ff').join(':'),
])('%j is none', (text) => {
  expect(parseSerial(text)).toBeUndefined()
})

test('a serial is shown with colons', () => {
  expect(['00', '1a2b3c'].map(formatSerial)).toEqual(['00', '1a:2b:3c'])
})
