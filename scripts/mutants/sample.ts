import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applied, type Mutant, mutantsOf } from './mutator/mutator.ts'

/** The folders of src/ that are mutated. */
export const folders = ['keys', 'store', 'auth/acl', 'audit', 'leases'] as const

/** A mutant of a file of the project. */
export interface Candidate extends Mutant {
  readonly folder: string
  /** From the project's root. */
  readonly path: string
}

/** All mutants of the folders, whether they pass the type check or not. */
export const candidatesIn = (root: string, wanted: readonly string[]): Candidate[] =>
  wanted.flatMap((folder) =>
    globSync(`src/${folder}/**/*.ts`, { cwd: root })
      .sort()
      .flatMap((path) =>
        mutantsOf(readFileSync(join(root, path), 'utf8')).map((mutant) => ({ ...mutant, folder, path })),
      ),
  )

export interface Sample {
  readonly chosen: readonly Candidate[]
  /** Candidates that were drawn and do not pass the type check: they are no mutants. */
  readonly refused: number
}

/**
 * Draws mutants in an order that depends on the seed alone, from each folder in proportion to its candidates.
 * @param passes the type check of a file with another text
 */
export function draw(
  candidates: readonly Candidate[],
  { seed, count }: { readonly seed: string; readonly count: number },
  passes: (path: string, change: Candidate) => boolean,
): Sample {
  const groups = [...Map.groupBy(candidates, ({ folder }) => folder).values()]
  const shares = apportion(
    groups.map(({ length }) => length),
    count,
  )
  const chosen: Candidate[] = []
  let refused = 0
  for (const [n, group] of groups.entries()) {
    const wanted = chosen.length + (shares[n] ?? 0)
    for (const candidate of group.toSorted(byLot(seed))) {
      if (chosen.length === wanted) break
      if (passes(candidate.path, candidate)) chosen.push(candidate)
      else refused++
    }
  }
  return { chosen: chosen.sort(byLot(seed)), refused }
}

/** Whole numbers that add up to `count`, in proportion to the sizes: largest remainders. */
export function apportion(sizes: readonly number[], count: number): number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  const exact = sizes.map((size) => (total === 0 ? 0 : (size * Math.min(count, total)) / total))
  const shares = exact.map(Math.floor)
  const missing =
    Math.round(exact.reduce((sum, share) => sum + share, 0)) - shares.reduce((sum, share) => sum + share, 0)
  const order = exact.map((share, n) => ({ n, rest: share % 1 })).sort((one, other) => other.rest - one.rest)
  for (const { n } of order.slice(0, missing)) shares[n] = (shares[n] ?? 0) + 1
  return shares
}

const byLot = (seed: string): ((one: Candidate, other: Candidate) => number) => {
  const lots = new Map<Candidate, string>()
  const lot = (candidate: Candidate): string => {
    const { path, start, end, text } = candidate
    const known = lots.get(candidate)
    const drawn = known ?? createHash('sha256').update(`${seed} ${path} ${start} ${end} ${text}`).digest('hex')
    if (known === undefined) lots.set(candidate, drawn)
    return drawn
  }
  return (one, other) => (lot(one) < lot(other) ? -1 : 1)
}

/**
 * Judges by the type check. Where a function may return undefined, or nothing, `true` and `false` in place of its value
 * are the same mutant again, so only `undefined` counts.
 */
export const judge =
  (root: string, passes: (path: string, text: string) => boolean) =>
  (path: string, mutant: Mutant): boolean => {
    const source = readFileSync(join(root, path), 'utf8')
    if (!passes(path, applied(source, mutant))) return false
    const repeats = mutant.operator === 'return' && (mutant.text === 'true' || mutant.text === 'false')
    return !repeats || !passes(path, applied(source, { ...mutant, text: 'undefined' }))
  }
