import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Candidate } from './sample.ts'
import type { Fate } from './trial/attempt.ts'
import { project } from './trial/site.ts'

/** The settings that decide which mutants are drawn and how they are tried. */
export interface Settings {
  readonly seed: string
  readonly count: number
  readonly seconds: number
  readonly only: readonly string[]
  /** Beginnings of paths of test files; empty for all. */
  readonly tests: readonly string[]
}

export type Result = Candidate & Fate

export interface Results {
  readonly settings: Settings
  /** Digest of src/: results for other source are not continued. */
  readonly source: string
  /** Candidates by folder, before the type check. */
  readonly found: Readonly<Record<string, number>>
  readonly drawn: number
  readonly refused: number
  readonly rehearsalMinutes: number
  readonly minutes: number
  /** Test files that fail without a mutant, or take longer than the budget: they had no part in it. */
  readonly failing: readonly string[]
  readonly long: readonly string[]
  readonly results: readonly Result[]
}

const store = join(project, '.build', 'mutants.json')

export function loadResults(): Results | undefined {
  return existsSync(store) ? (JSON.parse(readFileSync(store, 'utf8')) as Results) : undefined
}

export function saveResults(results: Results): void {
  mkdirSync(dirname(store), { recursive: true })
  writeFileSync(store, `${JSON.stringify(results, null, 1)}\n`)
}

/** The same mutant, in the same source. */
export const keyOf = ({ path, start, end, text }: Candidate): string => `${path} ${start} ${end} ${text}`
