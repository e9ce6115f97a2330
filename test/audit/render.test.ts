import { expect, test } from 'vitest'
import { joined, member, objectText, quoted, quoteRaw } from '../../src/audit/render.ts'

test('a record leaves out members without a value, and no others', () => {
  const empty = [undefined, null, '', 0, false, [], {}]
  expect(empty.map((value) => member('m', value))).toEqual(empty.map(() => ''))
  const kept = ['x', 1, true, [''], { a: null }]
  expect(kept.map((value) => member('m', value))).toEqual(kept.map((value) => `"m":${JSON.stringify(value)}`))
})

test('commas stand between members alone', () => {
  expect(joined([])).toBe('')
  expect(joined(['', ''])).toBe('')
  expect(joined(['"a":1'])).toBe('"a":1')
  expect(joined(['', '"a":1', '', '"b":2', ''])).toBe('"a":1,"b":2')
})

test('any text is quoted as JSON', () => {
  const texts = ['', 'plain [~] text', '"', '\\', '\n', '\u007f', 'é', '\ud800', 'a"', 'ab\u001f']
  expect(texts.map(quoted)).toEqual(texts.map((text) => JSON.stringify(text)))
  expect(quoteRaw('a"é')).toBe('"a\\"é"')
  expect(quoteRaw(Buffer.from('a"é'))).toBe('"a\\"é"')
})

test('every string in a value is hidden, except below the names that are shown', () => {
  const value = {
    ...{ text: 'a', number: 1.5, flag: false, nothing: null, absent: undefined, odd: Number.NaN },
    ...{ list: ['b', [2, 'c'], undefined], bytes: Buffer.from('d'), date: new Date(0), 'na"me': { 'ü"': 'e' } },
  }
  const hide = (text: string | Uint8Array) => `<${text}>`
  const after = '"flag":false,"nothing":null,"odd":null,"list":'
  expect(objectText(value, hide)).toBe(
    `{"text":<a>,"number":1.5,${after}[<b>,[2,<c>],null],"bytes":<d>,"date":<${new Date(0).toISOString()}>,` +
      `"na\\"me":{"ü\\"":<e>}}`,
  )
  const clear = new Set(['text', 'number', 'list', 'na"me'])
  expect(objectText(value, hide, clear)).toBe(
    `{"text":"a","number":1.5,${after}["b",[2,"c"],null],"bytes":<d>,"date":<${new Date(0).toISOString()}>,` +
      `"na\\"me":{"ü\\"":<e>}}`,
  )
  expect(objectText({}, hide)).toBe('{}')
})
