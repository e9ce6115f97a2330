import { type Acl, compile, rootAcl } from './acl/compile.ts'
import { type Policy, parsePolicy } from './acl/parse.ts'
import { memo } from './memo.ts'

/** All policies at one moment, parsed and compiled on demand. */
export interface PolicySet {
  /** Policy texts by name. */
  readonly texts: ReadonlyMap<string, string>
  /** The union of these policies; a name without a policy allows nothing. */
  acl(names: readonly string[]): Acl
}

/** Compiled combinations kept; an evicted one is compiled again. */
const keptCombinations = 128

/** @param texts policy texts by lower-case name, each accepted by `parsePolicy` when it was written */
export function policySet(texts: ReadonlyMap<string, string>): PolicySet {
  const parsed = new Map<string, Policy>()
  const compiled = memo<Acl>(keptCombinations)
  /** By identity of the list: a cached token presents the same one each time. */
  const byList = new WeakMap<readonly string[], Acl>()

  const policy = (name: string): [string, Policy][] => {
    const text = texts.get(name)
    if (text === undefined) return []
    const known = parsed.get(name) ?? reparse(name, text)
    parsed.set(name, known)
    return [[name, known]]
  }

  const combined = (names: readonly string[]): Acl => {
    if (names.length === 1 && names[0] === 'root') return rootAcl
    const key = names.join('\0')
    const known = compiled.get(key)
    if (known !== undefined) return known
    const acl = compile(new Map(names.flatMap(policy)))
    compiled.set(key, acl)
    return acl
  }

  return {
    texts,
    acl(names) {
      const known = byList.get(names)
      if (known !== undefined) return known
      const acl = combined(names)
      byList.set(names, acl)
      return acl
    },
  }
}

/** A stored text that no longer parses is our fault, not the caller's: a 500, and no grant. */
function reparse(name: string, text: string): Policy {
  try {
    return parsePolicy(text)
  } catch (error) {
    throw new Error(`stored policy "${name}" cannot be read by this version`, { cause: error })
  }
}
