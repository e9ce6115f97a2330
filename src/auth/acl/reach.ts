import { type Acl, denies, type Rule } from './compile.ts'

/**
 * Whether the policies grant anything on some path below `directory`: a caller without such a grant is not told that
 * the mount exists.
 * @param directory a mount's path with its slash
 */
export function reaches(acl: Acl, directory: string): boolean {
  if (acl.root) return true
  const grants = (rule: Rule) => rule.capabilities !== 0 && !denies(rule)
  for (const rule of acl.exact.values()) {
    if (grants(rule) && (rule.path.startsWith(directory) || `${rule.path}/` === directory)) return true
  }
  return acl.patterns.some(({ rule }) => grants(rule) && overlaps(rule.path, directory))
}

/** Whether some path below `directory` matches the pattern. */
function overlaps(pattern: string, directory: string): boolean {
  const prefix = pattern.endsWith('*')
  const parts = (prefix ? pattern.slice(0, -1) : pattern).split('/')
  for (const [index, segment] of directory.slice(0, -1).split('/').entries()) {
    const part = parts[index]
    if (part === undefined) return false
    if (prefix && index === parts.length - 1) return segment.startsWith(part)
    if (part !== '+' && part !== segment) return false
  }
  return true
}
