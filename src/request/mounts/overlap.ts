import { SortedList } from '../../store/sortedlist.ts'

interface WithPath {
  readonly path: string
}

/** Mounts of which no two have the same path. */
export const mountsByPath = <T extends WithPath>(mounts: Iterable<T> = []): SortedList<T> =>
  SortedList.of(({ path }) => path, mounts)

/** The mount that conflicts with a path: the same, above or below it. All paths end in a slash. */
export function overlapping<T extends WithPath>(mounts: SortedList<T>, path: string): T | undefined {
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const above = mounts.get(path.slice(0, at + 1))
    if (above !== undefined) return above
  }
  const next = mounts.from(path)
  return next?.path.startsWith(path) ? next : undefined
}
