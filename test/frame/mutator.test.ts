import { expect, test } from 'vitest'
import { judgementsIn } from '../../scripts/mutants/judgements.ts'
import { applied, mutantsOf } from '../../scripts/mutants/mutator/mutator.ts'
import { Reach } from '../../scripts/mutants/reach.ts'
import { apportion } from '../../scripts/mutants/sample.ts'
import { plan } from '../../scripts/mutants/trial/attempt.ts'

/** `operator: text with the fault`, for each mutant of a source. */
const faults = (source: string): string[] =>
  mutantsOf(source).map((mutant) => `${mutant.operator}: ${applied(source, mutant)}`)

test.each([
  ['if (a < b) f = 1', ['comparison: if (a <= b) f = 1', 'comparison: if (a >= b) f = 1', 'integer: if (a < b) f = 2']],
  ['x = a === b', ['comparison: x = a !== b']],
  ['x = a && b', ['connective: x = a || b']],
  ['x = a + b', ['arithmetic: x = a - b']],
  ["x = a + ' b'", []],
  ['x += y', ['arithmetic: x -= y']],
  ['while (!a) b', ['condition: while (a) b']],
  ['x = f() ? a : b', ['condition: x = !f() ? a : b']],
  ['x = true', ['boolean: x = false']],
  ['x = 0x10n', ['integer: x = 17n']],
  ['x = 1.5', []],
  ["x = 'word'", ["string: x = ''"]],
  [`x = \`\${a}/\${b}\``, ["string: x = ''"]],
  ["x = 'two words'", []],
  ['x = a ?? b', ['fallback dropped: x = (a)', 'fallback dropped: x = (b)']],
  ['await f(x)', ['call removed: ;']],
  ['if (a) throw b', ['guard removed: ;', 'condition: if (!a) throw b']],
  ['f = () => [a]', ['return: f = () => []']],
  ['f = () => g', ['return: f = () => undefined', 'return: f = () => true', 'return: f = () => false']],
])('%s has its mutants and no others', (source, expected) => {
  expect(faults(source)).toEqual(expected)
})

test.each([
  "import { a } from 'b'",
  "type A = 'b' | 1",
  'interface A { readonly b: 1 }',
  "x = y as 'z'",
  "throw new RangeError('no' + 1)",
  `throw badRequest(\`version \${n + 1}\`)`,
  "this.#log.warn({ a: 1 }, 'b')",
  "x = { 1: a, 'b': c, about: 'd' }",
])('%s has none: types, imports, names, messages and log lines', (source) => {
  expect(faults(source)).toEqual([])
})

test('a mutant tells its line, the code around it and the innermost function with a name', () => {
  const source = 'class A {\n  get size() {\n    return this.all.filter((x) => x > 1)\n  }\n}\n'
  expect(mutantsOf(source).filter(({ operator }) => operator === 'integer')).toEqual([
    {
      ...{ operator: 'integer', line: 3, within: 'get size', before: '1', after: '2' },
      ...{ start: source.indexOf('1'), end: source.indexOf('1') + 1, text: '2' },
    },
  ])
})

test('shares of a sample follow the sizes and add up', () => {
  expect(apportion([50, 30, 20], 10)).toEqual([5, 3, 2])
  expect(apportion([1, 1, 1], 2)).toEqual([1, 1, 0])
  expect(apportion([2, 1], 10)).toEqual([2, 1])
})

test('tests lead to a file by imports and by paths of programs that they start', () => {
  const reach = new Reach(
    new Map([
      ['src/a.ts', ''],
      ['src/main.ts', "import { a } from './a.ts'"],
      ['test/a.test.ts', "import { a } from '../src/a.ts'"],
      ['test/main.test.ts', "const main = join(import.meta.dirname, '../src/main.ts')"],
      ['test/other.test.ts', ''],
    ]),
  )
  expect([...reach.testsOf('src/a.ts')]).toEqual([
    ['test/a.test.ts', 1],
    ['test/main.test.ts', 2],
  ])
})

test('near and quick test files come first, as many as the budget takes', () => {
  const tests = [
    { file: 'far', seconds: 4, distance: 9 },
    { file: 'long', seconds: 30, distance: 0 },
    { file: 'near', seconds: 5, distance: 1 },
    { file: 'quick', seconds: 1, distance: 3 },
  ]
  expect(plan(tests, 12).map(({ file }) => file)).toEqual(['quick', 'near', 'far'])
})

test('judgements of a report stay with their mutants, whatever line these move to', () => {
  const before = '| src/a.ts:7 | comparison | `a \\| b` | `c` | all 2 | equivalent: no difference |'
  expect([...judgementsIn(`${before}\n| src/b.ts:1 | integer | \`1\` | \`2\` | all 3 | not judged yet |`)]).toEqual([
    ['src/a.ts | comparison | `a \\| b` | `c`', 'equivalent: no difference'],
  ])
})
