import { after } from '../after.ts'
import type { Acl } from '../auth/acl/compile.ts'
import { decide, denial, explain, restrict, type Verdict } from '../auth/acl/decide.ts'
import { ApiError, errorList } from '../errors.ts'
import type { Capability, MaybePromise, Method } from '../route.ts'
import type { CanonicalRequest } from './canonicalise.ts'
import { parametersOf, shorterPaths } from './parameters.ts'
import type { Target } from './routetable.ts'

/** The capability that each method needs; a POST may need `create` instead. */
export const capabilities: Readonly<Record<Method, Capability>> = {
  GET: 'read',
  HEAD: 'read',
  LIST: 'list',
  POST: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/**
 * The capability that a request needs. Whether a POST creates or updates is looked up only for callers who may do one
 * of them: for others the capability in the refusal would reveal what exists.
 */
export function neededCapability(
  { method, policyPath }: CanonicalRequest,
  { mount, context, match }: Target,
  acl: Acl,
): MaybePromise<Capability> {
  const { route } = match.endpoint
  if (method !== 'POST' || route.exists === undefined) return capabilities[method]
  const may = (capability: Capability): boolean => decide(acl, capability, policyPath).allowed
  if (!may('update') && !may('create')) return capabilities[method]
  return after(route.exists(context, mount, match.params), (exists) => (exists ? 'update' : 'create'))
}

/** The decision of the policies on a request, including rules on its parameters. */
export function verdictOn(request: CanonicalRequest, { match }: Target, acl: Acl, capability: Capability): Verdict {
  const { path, policyPath, sentPolicyPath, input } = request
  const verdict = decide(acl, capability, policyPath, match.endpoint.access === 'sudo')
  if (!verdict.allowed) return verdict
  const denied = sentPolicyPath === undefined ? undefined : denial(acl, capability, sentPolicyPath)
  if (denied !== undefined) return denied
  if (!acl.limited) return verdict
  return restrict(acl, verdict, capability, parametersOf(input, match), shorterPaths(path, match))
}

/** 403 by the policies: first the reference's exact text, then the rule that refused. */
export const notAuthorised = (verdict: Verdict, path: string): ApiError =>
  new ApiError(403, [errorList(['permission denied']), explain(verdict, path)])
