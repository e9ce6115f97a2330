import { after } from '../../../after.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import type { MaybePromise, Mount } from '../../../route.ts'
import type { Ring } from './readring.ts'
import type { Rings } from './rings.ts'
import { refuseSoftDeleted } from './rules.ts'
import { VersionAhead } from './versions.ts'

/** A call whose path names a key. */
export interface NamedRing {
  readonly context: { readonly rings: Rings }
  readonly mount: Mount
  readonly params: Readonly<Record<string, string>>
}

type Work<T> = (ring: Ring) => MaybePromise<T>

/** Uses the ring named in the path. @throws ApiError 400 `missing` when it does not exist; any error of `work` */
export function withRing<T>(call: NamedRing, missing: string, work: Work<T>): MaybePromise<T> {
  const { context, mount, params } = call
  return after(context.rings.get(mount, params.name ?? ''), (ring) => useRing(call, ring, missing, work))
}

/**
 * Runs `work` on a ring, and again on the current one if it fails because the key was deleted, trimmed or rotated after
 * the ring was read. `work` must leave nothing behind when it fails.
 */
export function useRing<T>(call: NamedRing, ring: Ring | undefined, missing: string, work: Work<T>): MaybePromise<T> {
  if (ring === undefined) throw badRequest(missing)
  refuseSoftDeleted(ring.key)
  const again = async (error: unknown): Promise<T> => {
    if (error instanceof ApiError) throw error
    // Not from the cache, which may hold the old ring until the writer is answered.
    const now = await call.context.rings.read(call.mount, call.params.name ?? '')
    const same = now?.key.id === ring.key.id && now.key.rev === ring.key.rev
    if (same && !(error instanceof VersionAhead)) throw error
    return useRing(call, now, missing, work)
  }
  try {
    const result = work(ring)
    return result instanceof Promise ? result.catch(again) : result
  } catch (error) {
    return again(error)
  }
}
