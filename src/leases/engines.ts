import type { Engine } from '../engine.ts'
import type { Mount } from '../route.ts'
import type { Leases } from './leases.ts'
import type { Ground } from './revoke.ts'

/**
 * The way from a lease to the engine that gave it.
 * @param mounts those there are now
 */
export function takeBackBy(
  mounts: () => Promise<readonly Mount[]>,
  engines: ReadonlyMap<string, Engine>,
): Ground['takeBack'] {
  return async (uuid, payload) => {
    const mount = (await mounts()).find((one) => one.uuid === uuid)
    // A mount that is gone took everything in it along.
    if (mount === undefined) return
    const engine = engines.get(mount.type)
    if (engine?.revokeLease === undefined) throw new Error(`engines of type ${mount.type} take no leases back`)
    await engine.revokeLease(mount, payload)
  }
}

/** An engine whose mounts take their leases along when they go. */
export const withLeases = (engine: Engine, leases: Leases): Engine => ({
  ...engine,
  async onUnmount(mount) {
    await leases.forget(mount)
    await engine.onUnmount?.(mount)
  },
})
