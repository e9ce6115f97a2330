import { badRequest } from '../../../errors.ts'
import type { SystemContext } from '../../context.ts'

/** Properties common to the routes of named quotas. */
export const named = { access: 'token', captures: { name: /^\w(?:[\w.-]{0,126}\w)?$/ } } as const

const mostQuotas = 200

/** A mount's path gets its slash. @throws ApiError 400 for a path outside all mounts */
export async function quotaPath({ mounts }: SystemContext, given: string): Promise<string> {
  const path = given.replace(/^\/+/, '')
  if (path === '') return ''
  const mount = await mounts.find(path.replace(/\/?\*?$/, ''))
  if (mount === undefined) throw badRequest(`invalid mount path ${path.slice(0, 200)}`)
  return `${path}/` === mount.path ? mount.path : path
}

/** @throws ApiError 400 for a role, and for another kind of quota */
export function requireKind(body: { readonly role?: string; readonly type?: string }, kind: string): void {
  if (body.role) throw badRequest('role is not available: no auth method here has roles')
  if (body.type && body.type !== kind) throw badRequest(`type must be ${kind}`)
}

/** @param all of the kind @throws ApiError 400 where another quota has this path, or there are too many */
export function requireOwnPath(
  all: readonly { readonly name: string; readonly path: string }[],
  name: string,
  path: string,
): void {
  const others = all.filter((other) => other.name !== name)
  if (others.length >= mostQuotas) throw badRequest(`there may be at most ${mostQuotas} quotas`)
  const same = others.find((other) => other.path === path)
  if (same) throw badRequest(`quota rule with similar properties exists under the name "${same.name}"`)
}
