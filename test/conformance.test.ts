import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { routes as pkiRoutes } from '../src/engines/pki/index.ts'
import { routes as transitRoutes } from '../src/engines/transit/index.ts'
import { pathsOf, readChecklist, titlesOf } from './support/conformance.ts'

/** docs/conformance-*.md say what each engine must do; here is what makes those lists worth something. */

const root = join(import.meta.dirname, '..')
const engines = [
  { name: 'Transit', file: 'docs/conformance-transit.md', routes: transitRoutes, fewest: 30 },
  { name: 'PKI', file: 'docs/conformance-pki.md', routes: pkiRoutes, fewest: 3 },
]

describe.each(engines)('the checklist of $name', ({ file, routes, fewest }) => {
  const sections = readChecklist(readFileSync(join(root, file), 'utf8'))
  const rows = sections.flatMap((section) => section.rows)

  test('has as many rows in each section as its heading counts, numbered without a gap', () => {
    expect(sections.length).toBeGreaterThan(fewest)
    for (const { title, count, rows } of sections) {
      const letters = rows[0]?.id.replace(/\d+$/, '') ?? ''
      const numbered = Array.from({ length: count }, (_, index) => `${letters}${index + 1}`)
      expect(
        rows.map(({ id }) => id),
        title,
      ).toEqual(numbered)
    }
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  })

  test('names a test for every row', () => {
    expect(rows.filter(({ tests }) => tests.length === 0).map(({ id, rule }) => `${id} ${rule}`)).toEqual([])
  })

  test('names existing tests, in their groups', () => {
    const known = new Map<string, Set<string>>()
    const titles = (file: string): Set<string> => {
      const path = join(root, file)
      if (!known.has(file)) known.set(file, existsSync(path) ? titlesOf(readFileSync(path, 'utf8')) : new Set())
      return known.get(file) ?? new Set()
    }
    const missing = rows.flatMap(({ id, tests }) =>
      tests
        .map(({ file, titles: path }) => ({ file, path: path.join(' › ') }))
        .filter(({ file, path }) => !titles(file).has(path))
        .map(({ file, path }) => `${id}: ${file} › ${path}`),
    )
    expect(missing).toEqual([])
  })

  test('has a section for every route, in which a row names each field of its body', () => {
    const missing = routes.flatMap(({ method, path, body }) => {
      const section = sections.find(({ title }) => pathsOf(title).has(`${method} ${path}`))
      if (section === undefined) return [`${method} ${path}`]
      const text = section.rows.map(({ rule }) => rule).join('\n')
      const unnamed = Object.keys(body.properties).filter((field) => !text.includes(`\`${field}\``))
      return unnamed.map((field) => `${method} ${path}: ${field}`)
    })
    expect(missing).toEqual([])
  })
})

describe('a checklist', () => {
  test('is read as it is written', () => {
    const text =
      '## Sign: `POST sign/:name(/:hash)` (1)\n| S1 | a rule | `test/a.test.ts` › one › two<br>`test/b.test.ts` › x |'
    expect(readChecklist(text)).toEqual([
      {
        title: 'Sign: `POST sign/:name(/:hash)`',
        count: 1,
        rows: [
          {
            id: 'S1',
            rule: 'a rule',
            tests: [
              { file: 'test/a.test.ts', titles: ['one', 'two'] },
              { file: 'test/b.test.ts', titles: ['x'] },
            ],
          },
        ],
      },
    ])
    expect(pathsOf('Sign: `POST sign/:name(/:hash)`')).toEqual(new Set(['POST sign/:name', 'POST sign/:name/:hash']))
  })

  test('knows a test by the groups around it', () => {
    const source = [
      "test('outside', () => {",
      "  call('no title', 1)",
      '})',
      'describe.each([',
      "  ['a', 1],",
      "])('one', (a) => {",
      "  describe('two', () => {",
      "    test.each(['x'])(",
      "      'it\\'s %s',",
      '      () => {},',
      '    )',
      '  })',
      "  it.skipIf(a)('three', () => {})",
      '})',
    ].join('\n')
    expect([...titlesOf(source)]).toEqual(['outside', 'one', 'one › two', "one › two › it's %s", 'one › three'])
  })
})
