import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { heads, judgementsIn, keyOf, unjudged } from './judgements.ts'
import type { Result, Results } from './results.ts'
import { project } from './trial/site.ts'

const document = join(project, 'docs', 'mutants.md')
/** A row of survivors; the judgement is written by hand into the last cell, and kept by the next report. */
const cellsOf = (result: Result, judgements: ReadonlyMap<string, string>): string[] => {
  const own = [`${result.path}:${result.line}`, result.operator, code(result.before), code(result.after)]
  return [...own, extent(result), judgements.get(keyOf(own)) ?? unjudged]
}

function extent({ ran, of }: Result): string {
  if (of === 0) return 'none runs it'
  return ran === of ? `all ${of}` : `${ran} of ${of}`
}

const code = (text: string): string => {
  const fence = text.includes('`') ? '``' : '`'
  return `${fence}${text.replaceAll('|', '\\|')}${fence}`
}

/** A table of survivors in Markdown, with the judgements that docs/mutants.md has. */
export function survivorTable(results: readonly Result[]): string {
  const judgements = judgementsIn(written())
  return [heads, heads.map(() => '---'), ...survivorsOf(results).map((result) => cellsOf(result, judgements))]
    .map(row)
    .join('\n')
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

const written = (): string => (existsSync(document) ? readFileSync(document, 'utf8') : '')

const survivorsOf = (results: readonly Result[]): Result[] =>
  results
    .filter(({ status }) => status === 'survived')
    .toSorted((one, other) => (one.path === other.path ? one.line - other.line : one.path < other.path ? -1 : 1))

/** Figures by folder, in Markdown. */
export function figures({ results, found }: Results): string {
  const folders = Object.keys(found)
  const line = (name: string, some: readonly Result[], candidates: number): string => {
    const [killed, survived, undecided] = (['killed', 'survived', 'undecided'] as const).map(
      (status) => some.filter((result) => result.status === status).length,
    )
    return row([name, ...[candidates, some.length, killed, survived, undecided].map(String), share(killed, survived)])
  }
  return [
    row(['folder', 'places found', 'mutants tried', 'killed', 'survived', 'undecided', 'killed of decided']),
    row(['---', ...Array<string>(6).fill('---:')]),
    ...folders.map((folder) =>
      line(
        `src/${folder}`,
        results.filter((result) => result.folder === folder),
        found[folder] ?? 0,
      ),
    ),
    line(
      'all',
      results,
      Object.values(found).reduce((sum, size) => sum + size, 0),
    ),
  ].join('\n')
}

const share = (killed = 0, survived = 0): string =>
  killed + survived === 0 ? '–' : `${((100 * killed) / (killed + survived)).toFixed(1)} %`

/** Rewrites docs/mutants.md: figures of this run, and the judgements that it had. */
export function writeReport(run: Results): void {
  const judgements = judgementsIn(written())
  const survivors = survivorsOf(run.results)
  const equivalent = survivors.filter((result) => /^equivalent\b/.test(cellsOf(result, judgements).at(-1) ?? ''))
  const killed = run.results.filter(({ status }) => status === 'killed').length
  const bounded = survivors.filter(({ ran, of }) => ran < of).length
  const undecided = run.results.filter(({ status }) => status === 'undecided')
  const sections = [
    `# Mutants

\`npm run mutants\` changes one place of the source at a time and looks whether a test fails. It writes this report, except the
judgements: they are written by hand, and the next report keeps them. Options: \`npm run mutants -- --help\`.`,
    `## Figures

${describeRun(run)}

${figures(run)}

${bounded} survivors had more tests than the budget took. With ${equivalent.length} judged equivalent left out,
${share(killed, survivors.length - equivalent.length)} are killed.`,
    `## Survivors

"tests" are the files that ran, of those that run the function at all.

${survivorTable(run.results)}`,
    ...(undecided.length === 0 ? [] : [`## Undecided\n\n${undecided.map(describeUndecided).join('\n')}`]),
    `## How it is done

${method}`,
  ]
  writeFileSync(document, `${sections.join('\n\n')}\n`)
}

function describeRun({ settings, drawn, refused, results, rehearsalMinutes, minutes, failing, long }: Results): string {
  const { seed, seconds, tests } = settings
  const names = (files: readonly string[]): string => (files.length === 0 ? 'none' : files.join(', '))
  return `- Seed ${seed}: ${drawn} mutants drawn; ${refused} places more were drawn whose change does not pass the type check.
- ${results.length} tried in ${minutes.toFixed(1)} minutes, after ${rehearsalMinutes.toFixed(1)} minutes of rehearsal, each with at most ${seconds} seconds of tests${tests.length === 0 ? '' : `, of ${names(tests)} alone`}.
- Test files without a part in it, because they fail without a mutant: ${names(failing)}.
- The same, because they take longer than ${seconds} seconds: ${names(long)}.`
}

const describeUndecided = ({ path, line, operator, before, after, file, test, reason }: Result): string =>
  `- ${path}:${line} ${operator}: ${code(before)} → ${code(after)}; ${file} ${test}: ${reason.split('\n')[0]}`

const method = `StrykerJS (10.1) does not fit: it switches mutants on in the test's own process, so the nodes that tests start would run without
them, and its type checker needs the programming interface that TypeScript 7 no longer has.

- \`scripts/mutants/mutator/operators.ts\` is the table of operators. Types, imports, texts of errors and log lines are left alone.
- The seed draws from each folder in proportion to the places found; for a change that does not pass the type check another is drawn.
- A mutant is written into a private copy of the project with a database of its own, never into the checkout.
- A rehearsal without mutants (kept in \`.build/mutants-tests.json\`) measures each test file that reaches the folders, and learns by V8's
  coverage which functions it runs, in the nodes that it starts too. A mutant is tried with the files that run its function, near and
  quick ones first, up to the budget; the first failure ends it.
- A test that hangs kills only if its file passes once more without the mutant in less than a third of the limit. At the end the files
  that killed run again without mutants; kills by one that fails then are undecided.`
