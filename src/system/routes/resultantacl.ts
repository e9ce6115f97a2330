import { capabilityNames } from '../../auth/acl/capability.ts'
import type { Rule } from '../../auth/acl/compile.ts'
import type { Data } from '../../route.ts'
import { endpoint, noFields } from '../context.ts'

/** A rule under the names of Vault's policy language. */
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

export const readResultantAcl = endpoint({
  method: 'GET',
  path: 'internal/ui/resultant-acl',
  access: 'token',
  about: "The union of the caller's policies, in the form of the web interface.",
  body: noFields,
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
