import { badRequest } from '../../../errors.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { MaybePromise } from '../../../route.ts'
import { managedType } from './managedtype.ts'
import type { Ring } from './readring.ts'
import { type NamedRing, withRing } from './withring.ts'

/** Uses the ring named in the path, if certificates can be issued for its keys; as `withRing`. @throws ApiError 400 */
export function withCertifiableRing<T>(call: NamedRing, work: (ring: Ring) => MaybePromise<T>): MaybePromise<T> {
  return withRing(call, `key with provided name '${call.params.name ?? ''}' not found`, (ring) => {
    const { key } = ring
    // A managed key signs with its configured mechanism, for which a request may have no name.
    if (key.type === managedType || !algorithmOf(key.type).abilities.sign) {
      throw badRequest(`key type '${key.type}' does not support signing`)
    }
    if (key.derived) throw badRequest('operation not supported for keys with derivation enabled')
    return work(ring)
  })
}
