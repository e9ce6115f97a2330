import { listNames } from '../../../../route/namelist.ts'
import type { PkiContext } from '../../context.ts'

export const listRoles = listNames<PkiContext>({
  path: 'roles',
  about: 'The names of all roles.',
  page: ({ roles }, mount, after, limit) => roles.names(mount, after, limit),
})
