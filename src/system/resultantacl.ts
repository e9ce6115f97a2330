import { Type } from 'typebox'
import { capabilityNames } from '../auth/acl/capability.ts'
import type { Rule } from '../auth/acl/compile.ts'
import { type Data, route } from '../route.ts'
import type { SystemContext } from './context.ts'

const nothing = Type.Object({})

/** A rule under the names that policies have for what it says. */
function described({ capabilities, limits }: Rule): Data {
  return {
    capabilities: capabilities === 0 ? ['deny'] : capabilityNames(capabilities),
    ...(limits?.minWrappingSeconds ? { min_wrapping_ttl: limits.minWrappingSeconds } : {}),
    ...(limits?.maxWrappingSeconds ? { max_wrapping_ttl: limits.maxWrappingSeconds } : {}),
    ...(limits?.allowed.size ? { allowed_parameters: Object.fromEntries(limits.allowed) } : {}),
    ...(limits?.denied.size ? { denied_parameters: Object.fromEntries(limits.denied) } : {}),
    ...(limits?.required.length ? { required_parameters: limits.required } : {}),
  }
}

const byPath = (rules: readonly Rule[]): Data =>
  Object.fromEntries(rules.map((rule) => [rule.path.replace(/\*$/, ''), described(rule)]))

export const resultantAclRoute = route<SystemContext, typeof nothing>({
  method: 'GET',
  path: 'internal/ui/resultant-acl',
  access: 'token',
  about: "What the caller's policies say together, as the web interface reads it.",
  body: nothing,
  danger: 'none',
  async run({ context, caller }) {
    if (caller === undefined) throw new TypeError('a route for tokens ran without a caller')
    const acl = await context.policies.acl(caller.policies)
    const ending = (prefix: boolean) => acl.patterns.filter((one) => one.prefix === prefix).map(({ rule }) => rule)
    return {
      exact_paths: byPath([...acl.exact.values(), ...ending(false)]),
      glob_paths: byPath(ending(true)),
      root: acl.root,
    }
  },
})
