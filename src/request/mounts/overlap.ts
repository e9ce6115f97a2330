/** Whether one path is the other one, or above it. Both end in a slash. */
const overlaps = (one: string, other: string): boolean => one.startsWith(other) || other.startsWith(one)

/** The mount that conflicts with a path: the same, above or below it. */
export const overlapping = <T extends { readonly path: string }>(mounts: readonly T[], path: string): T | undefined =>
  mounts.find((mount) => overlaps(mount.path, path))

/**
 * The mounts that overlap any of these paths, in their order: of thousands of mounts few have to be compared with each
 * new one.
 */
export function nearby<T extends { readonly path: string }>(mounts: readonly T[], paths: readonly string[]): T[] {
  const wanted = new Set(paths)
  const above = new Set(paths.flatMap(prefixes))
  const isBelow = (path: string): boolean => prefixes(path).some((prefix) => wanted.has(prefix))
  return mounts.filter(({ path }) => above.has(path) || (isNested(path) && isBelow(path)))
}

const isNested = (path: string): boolean => path.indexOf('/') < path.length - 1

/** `a/b/` is below `a/` and itself. */
function prefixes(path: string): string[] {
  const found: string[] = []
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) found.push(path.slice(0, at + 1))
  return found
}
