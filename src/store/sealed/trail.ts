import { randomBytes } from 'node:crypto'

/** What others change between two changes of one worker, with room for several; every change of a set writes it. */
const mostStates = 8
const mostIds = 32

/**
 * The latest states of a set, oldest first: each a random name, and the ids of the members that came, changed or left
 * with it, separated by blanks; a line for each state.
 * @param trail of the set before, or null
 */
export function trailAfter(trail: string | null, changed: readonly string[]): string {
  const lines = [[randomBytes(6).toString('base64url'), ...changed].join(' ')]
  let ids = changed.length
  for (const line of linesOf(trail)
    .toReversed()
    .slice(0, mostStates - 1)) {
    ids += line.split(' ').length - 1
    if (ids > mostIds) {
      // Who was there then asks for what came later.
      lines.unshift(nameOf(line))
      break
    }
    lines.unshift(line)
  }
  return lines.join('\n')
}

/**
 * The ids of the members that may differ between two states of a set; undefined when the later one does not tell. It
 * never tells of a state that a restore has undone: another history has other names.
 */
export function changedBetween(earlier: string | null, later: string | null): Set<string> | undefined {
  const name = nameOf(linesOf(earlier).at(-1))
  const lines = linesOf(later)
  const at = lines.findIndex((line) => nameOf(line) === name)
  return at < 0 ? undefined : new Set(lines.slice(at + 1).flatMap((line) => line.split(' ').slice(1)))
}

const linesOf = (trail: string | null): string[] => trail?.split('\n') ?? []

const nameOf = (line = ''): string => line.split(' ', 1)[0] ?? ''
