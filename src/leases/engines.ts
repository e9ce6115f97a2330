import type { Engine } from '../engine.ts'
import type { Mount } from '../route.ts'
import type { Leases } from './leases.ts'
import type { RevokeDeps } from './revoke.ts'

/**
 * Finds the engine of a lease and has it revoke the lease.
 * @param mounts lists the current mounts
 */
export function engineRevoker(
  mounts: () => Promise<readonly Mount[]>,
  engines: ReadonlyMap<string, Engine>,
): RevokeDeps['revokeInEngine'] {
  return async (uuid, payload) => {
    const mount = (await mounts()).find((one) => one.uuid === uuid)
    // The contents of a removed mount are removed with it.
    if (mount === undefined) return
    const engine = engines.get(mount.type)
    if (engine?.revokeLease === undefined) throw new Error(`engines of type ${mount.type} cannot revoke leases`)
    await engine.revokeLease(mount, payload)
  }
}

/** The engine, which removes the leases of a removed mount before the leased objects. */
export const withLeases = (engine: Engine, leases: Leases): Engine => ({
  ...engine,
  async removeSome(mount, claim) {
    if ((await leases.removeSome(mount, claim)) || (await engine.removeSome?.(mount, claim))) return true
    await leases.forget(mount, claim)
    return false
  },
})
