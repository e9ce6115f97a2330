import { badRequest } from '../../../errors.ts'
import type { Mount } from '../../../route.ts'
import type { PkiContext } from '../context.ts'
import type { Role } from '../roles/role.ts'

/** @throws ApiError 400 for an unknown role */
export async function requireRole({ roles }: PkiContext, mount: Mount, name: string): Promise<Role> {
  const role = await roles.get(mount, name)
  if (role === undefined) throw badRequest(`unknown role: ${name}`)
  return role
}
