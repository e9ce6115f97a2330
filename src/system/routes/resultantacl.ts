import { Type } from 'typebox'
import { data, mapOf, strings } from '../../answers.ts'
import { capabilityNames } from '../../auth/acl/capability.ts'
import type { Rule } from '../../auth/acl/compile.ts'
import type { Data } from '../../route.ts'
import { endpoint, noFields } from '../context.ts'

const rule = Type.Object({
  capabilities: strings,
  min_wrapping_ttl: Type.Optional(Type.Integer()),
  max_wrapping_ttl: Type.Optional(Type.Integer()),
  allowed_parameters: Type.Optional(mapOf(Type.Array(Type.Unknown()))),
  denied_parameters: Type.Optional(mapOf(Type.Array(Type.Unknown()))),
  required_parameters: Type.Optional(strings),
})

const resultantAcl = Type.Object({
  exact_paths: Type.Optional(mapOf(rule)),
  glob_paths: Type.Optional(mapOf(rule)),
  root: Type.Boolean(),
})

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
  answers: data(resultantAcl),
  async run({ context, caller }) {
    if (caller === undefined) throw new TypeError('a route for tokens ran without a caller')
    const acl = await context.policies.acl(caller.policies)
    if (acl.root) return { root: true }
    const ending = (prefix: boolean) => acl.patterns.filter((one) => one.prefix === prefix).map(({ rule }) => rule)
    return {
      exact_paths: byPath([...acl.exact.values(), ...ending(false)]),
      glob_paths: byPath(ending(true)),
      root: false,
    }
  },
})
