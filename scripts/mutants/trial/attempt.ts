import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applied } from '../mutator/mutator.ts'
import type { Usable } from '../rehearsal.ts'
import type { Candidate } from '../sample.ts'
import type { FileResult, Run } from './run.ts'
import { project, type Site } from './site.ts'

/** What became of a mutant. */
export interface Fate {
  /** undecided: a test ran out of time, and not surely because of the mutant. */
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

/** The limit that tells a hang from a slow machine: more than three times the file's time without the mutant. */
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
  const files = chosen.map(({ file }) => file)
  const results = await withMutant(site, candidate, {
    files,
    bail: true,
    limitSeconds: (file) => limits.get(file) ?? 0,
  })
  const fate = (status: Fate['status'], { file, test, reason } = { file: '', test: '', reason: '' }): Fate => ({
    ...{ status, file, test, reason: reason.slice(0, longestReason), ran: results.length, of: tests.length },
    seconds: (performance.now() - began) / 1000,
  })
  const last = results.at(-1)
  if (last === undefined || last.verdict === 'passed') return fate('survived')
  if (last.verdict === 'failed' && !/timed out in \d+ ?ms/i.test(last.reason)) return fate('killed', last)
  const late = last.verdict === 'late' ? { ...last, reason: 'by time' } : last
  return fate((await hangs(site, candidate, last, limits.get(last.file) ?? 0)) ? 'killed' : 'undecided', late)
}

/** Whether a file that ran out of time does so because of the mutant, by how long it takes without it now. */
async function hangs(site: Site, candidate: Candidate, { file, verdict }: FileResult, limit: number): Promise<boolean> {
  const files = [file]
  const [usual] = await site.run({ files, bail: true, limitSeconds: () => 3 * limit })
  if (usual?.verdict !== 'passed') return false
  if (verdict === 'failed' || 3 * usual.seconds < limit) return true
  const [again] = await withMutant(site, candidate, { files, bail: true, limitSeconds: () => limitOf(usual.seconds) })
  return again?.verdict !== 'passed'
}

type Tests = Pick<Run, 'files' | 'bail' | 'limitSeconds'>

async function withMutant(site: Site, candidate: Candidate, tests: Tests): Promise<FileResult[]> {
  if (tests.files.length === 0) return []
  const source = readFileSync(join(project, candidate.path), 'utf8')
  site.write(candidate.path, applied(source, candidate))
  try {
    return await site.run(tests)
  } finally {
    site.write(candidate.path, source)
  }
}
