import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  allFromPrompt,
  componentsFromPrompt,
  componentsFromSheets,
  newSheet as drawnSheet,
  parseSheet,
  sheetsFromFiles,
} from '../../src/commands/components.ts'
import { kekPurposes } from '../../src/keys/tables.ts'
import { runDirectory } from '../support/directory.ts'

const newSheet = () => drawnSheet(randomBytes)

describe("a custodian's sheet", () => {
  test('is read as it was made, with comments and grouped digits', async () => {
    const text = await newSheet()
    const sheet = parseSheet(text)
    const grouped = text.replace(/([0-9a-f]{4})(?=[0-9a-f])/g, '$1 ').replaceAll('use', '# mine\n\nuse')
    expect(parseSheet(grouped)).toEqual(sheet)
    expect(Object.keys(sheet)).toEqual(kekPurposes)
  })

  test('with a mistyped digit is refused by its purpose, without repeating a digit', async () => {
    const text = (await newSheet()).replace(/^open (.)/m, (_, digit) => `open ${digit === '0' ? '1' : '0'}`)
    expect(() => parseSheet(text)).toThrow(/^the open component does not match its check value$/)
  })

  test.each([
    ['', 'the use component is missing'],
    ['pin 1234', 'line 1 does not begin with one of use, export, open, system'],
  ])('that says %j is refused', (text, words) => {
    expect(() => parseSheet(text)).toThrow(words)
  })

  test('is drawn from the generator that is given, whose bytes are wiped', async () => {
    const drawn: Buffer[] = []
    const sheet = await drawnSheet((bytes) => {
      const value = Buffer.alloc(bytes, 7 + drawn.length)
      drawn.push(value)
      return value
    })
    expect(parseSheet(sheet).export.bytes).toEqual(Buffer.alloc(32, 8))
    expect(drawn).toHaveLength(4)
    expect(drawn.every((value) => value.every((byte) => byte === 0))).toBe(true)
  })

  test('given twice, or alone, makes no KEK', async () => {
    const sheet = parseSheet(await newSheet())
    expect(() => componentsFromSheets([sheet])).toThrow('two custodians')
    expect(() => componentsFromSheets([sheet, sheet])).toThrow('equal components cancel out')
    const both = componentsFromSheets([sheet, parseSheet(await newSheet())])
    expect(both.use).toHaveLength(2)
  })
})

describe("custodians' files", () => {
  test('are read whatever their mode, with a warning of those that everybody may read', async () => {
    const directory = mkdtempSync(join(runDirectory(), 'sheets-'))
    const texts = [await newSheet(), await newSheet()]
    const files = texts.map((_, index) => join(directory, `custodian-${index + 1}`))
    for (const [index, file] of files.entries()) writeFileSync(file, texts[index] ?? '', { mode: 0o600 })
    chmodSync(files[1] ?? '', 0o644)
    const said: string[] = []
    expect(sheetsFromFiles(files, (text) => said.push(text))).toEqual(texts.map(parseSheet))
    expect(said).toEqual([`warning: ${files[1]} is open to everybody (mode 644)`])
  })
})

describe('custodians at the terminal', () => {
  const lines = (sheet: string) =>
    new Map(sheet.split('\n').map((line) => [line.split(' ')[0], line.replace(/^\w+ /, '')]))

  test('are asked one after the other for each KEK', async () => {
    const sheets = [lines(await newSheet()), lines(await newSheet()), lines(await newSheet())]
    const asked: string[] = []
    const components = await allFromPrompt(
      3,
      async (question) => {
        asked.push(question)
        const [, custodian, purpose] = /^custodian (\d), (\w+)/.exec(question) ?? []
        return sheets[Number(custodian) - 1]?.get(purpose) ?? ''
      },
      () => {},
    )
    expect(asked).toHaveLength(12)
    expect(components.system).toHaveLength(3)
  })

  test('are asked again when one was given before, which would cancel out', async () => {
    const [first = '', second = ''] = [await newSheet(), await newSheet()].map((sheet) => lines(sheet).get('use'))
    const answers = [first, first, second]
    const said: string[] = []
    const ask = async () => answers.shift() ?? ''
    expect(await componentsFromPrompt('use', 2, ask, (text) => said.push(text))).toHaveLength(2)
    expect(said).toEqual(['component 2 was already given: equal components cancel out'])
  })

  test('are asked again after a mistake, which is named without its digits', async () => {
    const good = lines(await newSheet()).get('use') ?? ''
    const answers = ['nonsense', good.replace(/^./, (digit) => (digit === '0' ? '1' : '0')), good]
    const said: string[] = []
    const ask = async () => answers.shift() ?? ''
    expect(await componentsFromPrompt('use', 1, ask, (text) => said.push(text))).toHaveLength(1)
    expect(said).toEqual([
      'a component is 64 hexadecimal digits followed by the 16 digits of its check value',
      'the use component does not match its check value',
    ])
  })
})
