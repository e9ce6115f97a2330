import type { Capability } from '../../route.ts'
import { bit, type Capabilities, capabilityNames } from './capability.ts'
import { type Acl, denies, type Rule, ruleFor } from './compile.ts'
import { breach, type RequestParameters } from './parameters.ts'

/** The decision of the policies, with the explanation of a refusal. */
export interface Verdict {
  readonly allowed: boolean
  /** The rule that decided; null when no rule covers the path, and for root. */
  readonly rule: Rule | null
  /** The needed capabilities that are not granted; empty when allowed. */
  readonly missing: readonly Capability[]
  /** The broken limit of the rule, as the end of a sentence that begins with the rule. */
  readonly broken: string | undefined
}

const none: readonly Capability[] = []
const allowedByRoot: Verdict = { allowed: true, rule: null, missing: none, broken: undefined }

/**
 * Whether `capability` (and sudo, where the route needs it) is granted on a path.
 * @param path canonical, no /v1/, no leading slash; a listing's ends in a slash
 */
export function decide(acl: Acl, capability: Capability, path: string, sudo = false): Verdict {
  if (acl.root) return allowedByRoot
  const rule = ruleFor(acl, path, capability)
  const needed: Capabilities = bit(capability) | (sudo ? bit('sudo') : 0)
  const missing = rule ? needed & ~rule.capabilities : needed
  if (missing === 0) return { allowed: true, rule, missing: none, broken: undefined }
  return { allowed: false, rule, missing: capabilityNames(missing), broken: undefined }
}

/**
 * The refusal of a path as sent, if its canonical form is spelled differently: a `deny` on either spelling counts, so
 * that a rule written for one of them holds. Undefined if no rule denies the path.
 */
export function denial(acl: Acl, capability: Capability, path: string): Verdict | undefined {
  const rule = acl.root ? null : ruleFor(acl, path, capability)
  return rule !== null && denies(rule) ? { allowed: false, rule, missing: [capability], broken: undefined } : undefined
}

/**
 * Applies the rules on parameters to a granted verdict, if the policies have any (`acl.limited`).
 * @param shorter the request's paths with fields moved from the path into the body (sign/k for sign/k/sha1). Limits on
 *   such a path bind too when the granting rule covers the longer one only by a wildcard (transit/*): else a parameter
 *   would escape its rule by moving from the body into the path
 */
export function restrict(
  acl: Acl,
  verdict: Verdict,
  capability: Capability,
  parameters: RequestParameters,
  shorter: readonly string[],
): Verdict {
  const { rule } = verdict
  if (rule === null) return verdict
  const others = shorter.filter((path) => !isLongerThan(rule, path)).map((path) => ruleFor(acl, path, capability))
  for (const bound of new Set([rule, ...others])) {
    const broken = bound?.limits && breach(bound.limits, capability, parameters)
    if (broken !== undefined) return { allowed: false, rule: bound, missing: none, broken }
  }
  return verdict
}

/** Whether the rule's text itself, without a closing `*`, has more segments than the path. */
const isLongerThan = (rule: Rule, path: string): boolean =>
  rule.path.replace(/\*$/, '').split('/').length > path.split('/').length

/**
 * The answer of sys/capabilities for a path: sorted names, `root` alone, or `deny` alone.
 * @param path canonical and folded @param sent the path as the caller wrote it: a `deny` counts for either
 */
export function capabilities(acl: Acl, path: string, sent = path): (Capability | 'root')[] {
  if (acl.root) return ['root']
  // Decided as a listing, so that a directory's path has the same rules as a request to list it.
  if (sent !== path && denial(acl, 'list', sent)) return ['deny']
  const rule = ruleFor(acl, path, 'list')
  return rule && rule.capabilities !== 0 ? capabilityNames(rule.capabilities) : ['deny']
}

/** One sentence for a refusal: the rule that refused, and the capabilities that would satisfy it. */
export function explain({ rule, missing, broken }: Verdict, path: string): string {
  const needs = missing.map((name) => `"${name}"`).join(' and ')
  if (rule === null) return `no policy of this token has a rule for path "${path}", which needs ${needs}`
  const where = `path "${rule.path}" in policy ${rule.policies.map((name) => `"${name}"`).join(', ')}`
  if (broken !== undefined) return `${where} ${broken}`
  if (denies(rule)) return `${where} denies "${path}"`
  return `${where} applies to "${path}" and does not grant ${needs}`
}
