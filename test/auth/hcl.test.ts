import { describe, expect, test } from 'vitest'
import { type Block, isBlock, readHcl, type Value } from '../../src/auth/acl/hcl.ts'

/** The tree as nested lists: a block is a list of keys and value. */
const shown = (value: Value): unknown =>
  isBlock(value)
    ? value.entries.map(({ keys, value: inner }) => [...keys, shown(inner)])
    : Array.isArray(value)
      ? (value as readonly Value[]).map(shown)
      : value
const read = (text: string) => shown(readHcl(text))
const refused = (text: string, reason: string) =>
  expect(() => readHcl(text), text).toThrow(`failed to parse policy: ${reason}`)

describe('HCL', () => {
  test('has numbers, booleans, texts, lists and blocks', () => {
    const text = 'a = 12 b = -3.5 c = 1e3 d = 0x1F e = true f = false g = "t" h = [1, ["x"],] i { j = {} } k "l" "m" {}'
    const values = { a: 12, b: -3.5, c: 1000, d: 31, e: true, f: false, g: 't', h: [1, ['x']] }
    expect(read(text)).toEqual([...Object.entries(values), ['i', [['j', []]]], ['k', 'l', 'm', []]])
  })

  test('has names of letters of any language, digits, and _ . -', () => {
    expect(read('_a-b.c1 = 1, é = 2 "any text" = 3')).toEqual([
      ['_a-b.c1', 1],
      ['é', 2],
      ['any text', 3],
    ])
    refused('1a = 1', 'At 1:1: illegal character "1"')
    refused('a = 1.', 'At 1:5: illegal character "1"')
    refused('a = b', 'At 1:5: expected a value, found "b"')
    refused('= 1', 'At 1:1: expected a key, found "="')
  })

  test('has these escapes in a text, and no others', () => {
    const text = String.raw`a = "\a\b\f\n\r\t\v\\\"\u00e9\U0010FFFF/*#"`
    expect(read(text)).toEqual([['a', `\x07\b\f\n\r\t\v\\"é\u{10ffff}/*#`]])
    for (const odd of ['\\x41', '\\101', '\\u12', '\\U00110000', "\\'"]) {
      refused(`a = "${odd}"`, 'At 1:5: illegal char escape')
    }
    refused('a = "x\\', 'At 1:5: literal not terminated')
    refused('a = "x\\"', 'At 1:5: literal not terminated')
  })

  test('counts lines and columns over comments and texts', () => {
    refused('/* 1\n 2 */ a = ?', 'At 2:11: illegal character "?"')
    refused('a = "\\n" ?', 'At 1:10: illegal character "?"')
    refused('# 1\n// 2\n\n  ?', 'At 4:3: illegal character "?"')
    const { entries } = readHcl('a\n=\n1\nb {\n}\n\nc\n"d" {}')
    const lines = entries.map(({ line, assignedOnLine }) => [line, assignedOnLine])
    expect(lines).toEqual([
      [1, 2],
      [4, 0],
      [7, 0],
    ])
  })

  test('wants each mark in its place', () => {
    refused('a {', 'At 1:4: expected a key, found the end')
    refused('a = [1', 'At 1:7: expected ",", found the end')
    refused('a = [,]', 'At 1:6: expected a value, found ","')
    refused('a', 'At 1:2: expected "{", found the end')
    refused('a {} }', 'At 1:6: expected a key, found "}"')
    refused('a : 1', 'At 1:3: expected "{", found ":"')
  })
})

describe('JSON', () => {
  test('gives the tree that HCL gives', () => {
    const json = ' {"a": [1, -2.5e1, true, "\\u00e9\\/"], "b": {"c d": {}}}'
    const list = [1, -25, true, 'é/']
    expect(read(json)).toEqual([
      ['a', list],
      ['b', [['c d', []]]],
    ])
    expect(read('a = [1, -2.5e1, true, "é/"] b { "c d" {} }')).toEqual(read(json))
    const [first] = (readHcl('{\n"a":\n1}') as Block).entries
    expect([first?.line, first?.assignedOnLine]).toEqual([2, 2])
  })

  test('is refused with what HCL alone has, and with text after it', () => {
    for (const text of ['{"a": 1,}', '{a: 1}', '{"a": 1} # x', '{"a": 1} {}', '{"a" {}}', '{"a": 0x1}', '{']) {
      expect(() => readHcl(text), text).toThrow(expect.objectContaining({ status: 400 }))
    }
    refused('{"a": null}', 'At 1:7: expected a value, found "null"')
  })
})

test('blocks and lists may be nested sixteen deep', () => {
  const lists = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const blocks = (depth: number) => `${'a { '.repeat(depth)}${'}'.repeat(depth)}`
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  for (const text of [`a = ${lists(16)}`, blocks(16), objects(16), `{"a":${lists(15)}}`, `a { b = ${lists(15)} }`]) {
    expect(() => readHcl(text), text).not.toThrow()
  }
  for (const text of [`a = ${lists(17)}`, blocks(17), objects(17), `{"a":${lists(16)}}`, `a { b = ${lists(16)} }`]) {
    expect(() => readHcl(text), text).toThrow('nested too deeply')
  }
})
