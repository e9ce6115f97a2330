import { type Acl, compile, rootAcl } from './acl/compile.ts'
import { type Policy, parsePolicy } from './acl/parse.ts'
import { memo } from './memo.ts'

/** Every policy there is at one moment, parsed and compiled as far as it was asked for. */
export interface PolicySet {
  /** Policy texts by name. */
  readonly texts: ReadonlyMap<string, string>
  /** What these policies allow together; names without a policy allow nothing. */
  acl(names: readonly string[]): Acl
}

/** Compiled combinations kept; what is pushed out is compiled again. */
const COMBINATIONS = 128

/** @param texts policy texts by lower-case name, all of them accepted by `parsePolicy` when they were written */
export function policySet(texts: ReadonlyMap<string, string>): PolicySet {
  const parsed = new Map<string, Policy>()
  const compiled = memo<Acl>(COMBINATIONS)
  /** By the list itself, which a cached token shows again and again. */
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

/** A stored text that no longer parses is our fault: nothing is granted, and it is not blamed on the caller. */
function reparse(name: string, text: string): Policy {
  try {
    return parsePolicy(text)
  } catch (error) {
    throw new Error(`stored policy "${name}" cannot be read by this version`, { cause: error })
  }
}
