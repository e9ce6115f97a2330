import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import { managedType } from './managedtype.ts'
import type { Ring } from './readring.ts'
import { refuseSoftDeleted } from './rules.ts'
import type { NamedRing } from './withring.ts'

/** The ring named in the path, if certificates can be issued for its keys. @throws ApiError 400 */
export async function certifiableRing({ context, mount, params }: NamedRing): Promise<Ring> {
  const { name = '' } = params
  const ring = await context.rings.get(mount, name)
  if (ring === undefined) throw badRequest(`key with provided name '${name}' not found`)
  const { key } = ring
  refuseSoftDeleted(key)
  // A managed key signs with its configured mechanism, for which a request may have no name.
  if (key.type === managedType || !algorithmOf(key.type).abilities.sign) {
    throw badRequest(`key type '${key.type}' does not support signing`)
  }
  if (key.derived) throw badRequest('operation not supported for keys with derivation enabled')
  return ring
}
