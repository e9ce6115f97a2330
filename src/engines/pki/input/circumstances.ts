import { TokenCaller } from '../../../auth/caller.ts'
import { effective } from '../../../request/mounts/tuning.ts'
import type { Call } from '../../../route.ts'
import type { PkiContext } from '../context.ts'
import type { Circumstances } from '../roles/decision.ts'

/** The caller of a request for a certificate, its time, and the limits of the mount. */
export function circumstancesOf({
  context,
  mount,
  caller,
}: Pick<Call<PkiContext>, 'context' | 'mount' | 'caller'>): Circumstances {
  const { displayName, row } = TokenCaller.of(caller)
  const { default_lease_ttl, max_lease_ttl } = effective(mount.config)
  return {
    now: context.clock.wall(),
    defaultTtlSeconds: Number(default_lease_ttl),
    maxTtlSeconds: Number(max_lease_ttl),
    identity: { displayName, metadata: row.meta ?? {} },
  }
}
