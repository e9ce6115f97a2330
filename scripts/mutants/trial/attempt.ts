import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applied } from '../mutator/mutator.ts'
import type { Usable } from '../rehearsal.ts'
import type { Candidate } from '../sample.ts'
import type { FileResult } from './run.ts'
import { project, type Site } from './site.ts'

/** What became of a mutant. */
export interface Fate {
  /** undecided: a test timed out, and did so or was slow without the mutant too. */
  readonly status: 'killed' | 'survived' | 'undecided'
  /** The test that decided; empty for a survivor. */
  readonly file: string
  readonly test: string
  readonly reason: string
  /** Test files that ran, and those that run the function: fewer ran when the budget was too small for all. */
  readonly ran: number
  readonly of: number
  readonly seconds: number
}

/** A test file that runs the mutant's function, and the number of imports between them. */
export interface Test extends Usable {
  readonly distance: number
}

/** Near and quick files first, as many as the budget takes by their time without the mutant. */
export function plan(tests: readonly Test[], budgetSeconds: number): Test[] {
  let left = budgetSeconds
  return tests
    .toSorted((one, other) => one.seconds * (one.distance + 1) - other.seconds * (other.distance + 1))
    .filter(({ seconds }) => {
      if (seconds > left) return false
      left -= seconds
      return true
    })
}

/** A hang is told from a slow machine by a limit of more than three times what the file takes without the mutant. */
const limitOf = (seconds: number): number => 3 * seconds + 10
const longestReason = 300

/** Runs the tests on a mutant until one fails. */
export async function attempt(
  site: Site,
  candidate: Candidate,
  tests: readonly Test[],
  budgetSeconds: number,
): Promise<Fate> {
  const began = performance.now()
  const chosen = plan(tests, budgetSeconds)
  const limits = new Map(chosen.map(({ file, seconds }) => [file, limitOf(seconds)]))
  const limitSeconds = (file: string): number => limits.get(file) ?? 0
  const source = readFileSync(join(project, candidate.path), 'utf8')
  site.write(candidate.path, applied(source, candidate))
  let results: FileResult[]
  try {
    results =
      chosen.length === 0 ? [] : await site.run({ files: chosen.map(({ file }) => file), bail: true, limitSeconds })
  } finally {
    site.write(candidate.path, source)
  }
  const last = results.at(-1)
  const fate = (status: Fate['status'], { file, test, reason } = { file: '', test: '', reason: '' }): Fate => ({
    ...{ status, file, test, reason: reason.slice(0, longestReason), ran: results.length, of: tests.length },
    seconds: (performance.now() - began) / 1000,
  })
  if (last === undefined || last.verdict === 'passed') return fate('survived')
  const late = last.verdict === 'late'
  if (!late && !/timed out in \d+ ?ms/i.test(last.reason)) return fate('killed', last)
  const [again] = await site.run({ files: [last.file], bail: true, limitSeconds })
  const quick = again?.verdict === 'passed' && again.seconds < limitSeconds(last.file) / 3
  return fate(quick ? 'killed' : 'undecided', late ? { ...last, reason: 'by time' } : last)
}
