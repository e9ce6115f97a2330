import type { Capability } from '../../route.ts'
import { memo } from '../memo.ts'
import { type Capabilities, denyBit, unite } from './capability.ts'
import { type Limits, uniteLimits } from './limits.ts'
import type { PathRule, Policy } from './parse.ts'

/** The union of a token's policies for one path text. */
export interface Rule {
  readonly path: string
  readonly capabilities: Capabilities
  /** Names of the policies that contain the path. */
  readonly policies: readonly string[]
  /** Undefined without limits, so that most rules cost nothing for them. */
  readonly limits: Limits | undefined
}

/** A rule that covers more than one path. */
interface Pattern {
  readonly rule: Rule
  /** Position of the first `+` segment or of the closing `*`. */
  readonly firstWildcard: number
  readonly prefix: boolean
  readonly plusSegments: number
  /** The path text without its closing `*`. */
  readonly text: string
  readonly matches: (path: string) => boolean
}

/** Everything a token may do, ready for look-ups. Immutable, except for its memory of earlier results. */
export interface Acl {
  readonly root: boolean
  /** Whether any rule has limits. */
  readonly limited: boolean
  readonly exact: ReadonlyMap<string, Rule>
  /** Highest priority first, so that the first match decides. */
  readonly patterns: readonly Pattern[]
  readonly remembered: { readonly plain: RuleMemo; readonly list: RuleMemo }
}

type RuleMemo = ReturnType<typeof memo<Rule | null>>

/** Paths remembered per policy set and kind; a key name is in the path, so this bounds hot keys, not policies. */
const rememberedPaths = 512
/** Callers may ask about any text (sys/capabilities-self): a thousand long ones would fill the memory of a worker. */
const longestRemembered = 200

const empty = () => ({ plain: memo<Rule | null>(rememberedPaths), list: memo<Rule | null>(rememberedPaths) })

/** Allows everything. */
export const rootAcl: Acl = {
  root: true,
  limited: false,
  exact: new Map(),
  patterns: [],
  remembered: empty(),
}

/**
 * @param policies the token's policies by name; the same path in several is the union of their capabilities under the
 *   union of their limits, and a `deny` in any of them leaves only `deny`
 */
export function compile(policies: ReadonlyMap<string, Policy>): Acl {
  const rules = new Map<string, Rule>()
  for (const [name, { paths }] of policies)
    for (const said of paths) rules.set(said.path, joined(rules.get(said.path), said, name))
  const exact = new Map([...rules].filter(([path]) => !isPattern(path)))
  const patterns = [...rules.values()].filter(({ path }) => isPattern(path)).map(pattern)
  const limited = [...rules.values()].some(({ limits }) => limits !== undefined)
  return { root: false, limited, exact, patterns: patterns.sort(byPriority), remembered: empty() }
}

function joined(known: Rule | undefined, { path, capabilities, limits }: PathRule, policy: string): Rule {
  if (known === undefined) return { path, capabilities, policies: [policy], limits }
  return {
    path,
    capabilities: unite(known.capabilities, capabilities),
    policies: [...new Set([...known.policies, policy])],
    limits: known.limits && limits ? uniteLimits(known.limits, limits) : (known.limits ?? limits),
  }
}

const isPattern = (path: string): boolean => path.endsWith('*') || path.split('/').includes('+')

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

function pattern(rule: Rule): Pattern {
  const prefix = rule.path.endsWith('*')
  const text = prefix ? rule.path.slice(0, -1) : rule.path
  const segments = text.split('/')
  const plusSegments = segments.filter((segment) => segment === '+').length
  if (plusSegments === 0)
    return { rule, firstWildcard: text.length, prefix, plusSegments, text, matches: (path) => path.startsWith(text) }
  // `+` is one whole segment, possibly empty; without a closing `*` the path must end where the text ends.
  const source = segments.map((segment) => (segment === '+' ? '[^/]*' : escaped(segment))).join('/')
  const expression = new RegExp(`^${source}${prefix ? '' : '$'}`)
  const firstWildcard = segments.slice(0, segments.indexOf('+')).reduce((at, segment) => at + segment.length + 1, 0)
  return { rule, firstWildcard, prefix, plusSegments, text, matches: (path) => expression.test(path) }
}

/** Vault's five rules; the first difference decides. By the first rule the longest matching plain prefix wins. */
function byPriority(one: Pattern, other: Pattern): number {
  return (
    other.firstWildcard - one.firstWildcard ||
    Number(one.prefix) - Number(other.prefix) ||
    one.plusSegments - other.plusSegments ||
    other.text.length - one.text.length ||
    (one.text < other.text ? 1 : -1)
  )
}

/** Whether the rule is an explicit `deny`. */
export const denies = (rule: Rule): boolean => rule.capabilities === denyBit

/**
 * The one rule that decides about a path: exact rules come before patterns; a listing, whose path ends in a slash,
 * falls back to the path without it.
 */
export function ruleFor(acl: Acl, path: string, capability: Capability): Rule | null {
  const listing = capability === 'list'
  const remembered = listing ? acl.remembered.list : acl.remembered.plain
  const known = remembered.get(path)
  if (known !== undefined) return known
  const bare = listing && path.endsWith('/') ? path.slice(0, -1) : undefined
  const rule =
    acl.exact.get(path) ??
    (bare === undefined ? undefined : acl.exact.get(bare)) ??
    firstMatch(acl, path) ??
    (bare === undefined ? undefined : firstMatch(acl, bare)) ??
    null
  if (path.length <= longestRemembered) remembered.set(copyOf(path), rule)
  return rule
}

/** As V8 keeps it, a piece of a long text keeps all of that text alive. */
const copyOf = (path: string): string => Buffer.from(path, 'utf16le').toString('utf16le')

const firstMatch = (acl: Acl, path: string): Rule | undefined => acl.patterns.find(({ matches }) => matches(path))?.rule
