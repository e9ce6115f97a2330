import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blocksOf, quotedIn, tableOf, textOf } from './document.ts'

const root = join(import.meta.dirname, '../../..')
/** All of src/ as one text. */
const source = globSync('src/**/*.ts', { cwd: root })
  .map((path) => readFileSync(join(root, path), 'utf8'))
  .join('\n')

/** The parts of a message between its `…`, which stand for variable text. */
const partsOf = (message: string): readonly string[] =>
  message.split('…').map((part) => part.trim().replace(/'/g, "\\'"))

/** Whether every part occurs in the source, in either kind of quotes. */
const occurs = (message: string): boolean =>
  partsOf(message).every((part) => source.includes(part) || source.includes(part.replaceAll("\\'", "'")))

const firstCells = (heading: string): readonly string[] =>
  tableOf('operations.md', heading).flatMap(([first = '']) => quotedIn(first))

describe('docs/operations.md quotes what the source says', () => {
  test('each metric', () => {
    const names = firstCells('Metrics').filter((name) => name.includes('.'))
    expect(names.length).toBeGreaterThan(10)
    // Those of tidy are put together from a prefix.
    const declared = (name: string): string[] => {
      const [, tidy, last] = /^(vault\.secrets\.pki\.tidy)\.(.*)$/.exec(name) ?? []
      return tidy === undefined ? [`'${name}'`] : [`'${tidy}'`, `'${last}'`]
    }
    expect(names.filter((name) => !declared(name).every(occurs))).toEqual([])
  })

  test.each(['Log lines', 'Answers with 503'])('each message under %s', (heading) => {
    const messages = firstCells(heading)
    expect(messages.length).toBeGreaterThan(10)
    expect(messages.filter((message) => !occurs(message))).toEqual([])
  })

  test('all answers with 503 that have a text of their own', () => {
    const told = firstCells('Answers with 503').map((message) => message.split('…').map((part) => part.trim()))
    const answer = /(?:\bunavailable\(|(?:ApiError|super|refusal)\(\s*503,)\s*(['"`])((?:(?!\1)[\s\S])+)\1/g
    const answers = [...source.matchAll(answer)].map(([, , text = '']) => text)
    expect(answers.length).toBeGreaterThan(30)
    const isTold = (text: string) => told.some((parts) => parts.every((part) => text.includes(part)))
    expect(answers.filter((text) => !isTold(text))).toEqual([])
  })
})

test.each([
  'install.md',
  'ceremony.md',
  'operations.md',
  'bad-day.md',
  'upgrade.md',
  'ca-practice.md',
  'audit.md',
  'pki.md',
])('every block of commands in docs/%s is run by a test, or the text before says whether anybody ran it', (name) => {
  const silent = blocksOf(name).filter(
    ({ runs, introduction }) =>
      !runs && !/\((not run|run by hand on \d{4}-\d\d-\d\d)/.test(introduction.replace(/\s+/g, ' ')),
  )
  expect(silent.map(({ line }) => `${name}:${line}`)).toEqual([])
})

test('every test file and folder that docs/threat-model.md names exists', () => {
  const rows = tableOf('threat-model.md', 'Promises and the tests that attack them')
  const named = quotedIn(textOf('threat-model.md')).filter((name) => name.startsWith('test/'))
  const short = rows.flatMap(([, tests = '']) => quotedIn(tests)).filter((name) => /^[a-z]+$/.test(name))
  expect(named.length).toBeGreaterThan(80)
  expect(short.length).toBeGreaterThan(40)
  const attacks = globSync('test/attack/**', { cwd: root }).map((path) => basename(path, '.test.ts'))
  const exists = (name: string) => [`${name}.test.ts`, name].some((path) => existsSync(join(root, path)))
  expect(named.filter((name) => !exists(name.replace(/\.test\.ts$/, '')))).toEqual([])
  expect(short.filter((name) => !attacks.includes(name))).toEqual([])
})
