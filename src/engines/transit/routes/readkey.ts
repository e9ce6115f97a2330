import { after } from '../../../after.ts'
import { algorithmOf } from '../../../keys/algorithms.ts'
import type { Data, MaybePromise, Mount } from '../../../route.ts'
import { derivedPoint } from '../ciphers/derived.ts'
import type { TransitContext } from '../context.ts'
import { describeKey } from '../ring/describe.ts'
import type { Ring } from '../ring/readring.ts'

/**
 * The key object, and with a derivation context the public keys that it gives: a derived signing key has none of its own.
 * @throws ApiError 404 when there is no such key
 */
export function readKey(
  context: TransitContext,
  mount: Mount,
  name: string,
  derivation: Buffer | undefined,
): MaybePromise<Data> {
  return after(describeKey(context, mount, name), (data) => {
    if (derivation === undefined) return data
    return after(context.rings.get(mount, name), (ring) => {
      if (!ring?.key.derived || algorithmOf(ring.key.type).kind !== 'ed25519') return data
      return withPoints(context, ring, data, derivation)
    })
  })
}

async function withPoints(context: TransitContext, ring: Ring, data: Data, derivation: Buffer): Promise<Data> {
  const keys: Record<string, unknown> = {}
  for (const [number, entry] of Object.entries(data.keys as Record<string, Data>)) {
    const version = ring.versions.get(Number(number))
    const point = version && (await derivedPoint({ context, ring, version }, derivation))
    keys[number] = { ...entry, public_key: point?.toString('base64') ?? '' }
  }
  return { ...data, keys }
}
