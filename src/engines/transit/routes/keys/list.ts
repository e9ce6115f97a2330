import { listNames } from '../../../../route/namelist.ts'
import type { TransitContext } from '../../context.ts'

export const listKeys = listNames<TransitContext>({
  path: 'keys',
  about: 'The names of all keys.',
  page: ({ rings }, mount, after, limit) => rings.names(mount, after, limit),
})
