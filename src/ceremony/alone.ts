import type { Clock } from '../clock.ts'
import type { Hsm } from '../hsm/hsm.ts'
import { whileRenewed } from '../jobs/renewal.ts'
import type { Alone } from '../keys/cluster/alone.ts'
import type { Logger } from '../log.ts'
import type { Database } from '../store/database.ts'
import { LeaseLost } from '../store/faults.ts'
import { waitForLease } from '../store/waiting.ts'

/** As long as a dead run keeps the next one waiting. */
const leaseSeconds = 15

/**
 * Brings KEKs into a token while nobody else does: two runs at once would make the same KEK twice, which is no KEK any
 * more, and each destroy the other's when it fails over that.
 * @param work asks before each step that another run must not take as well: a process that was stopped for longer than
 *   its lease lasts is not alone any more when it goes on
 * @throws Error while another process does so
 */
export async function adoptingAlone(
  place: { readonly clock: Clock; readonly database: Database; readonly hsm: Hsm; readonly log: Logger },
  work: (alone: Alone) => Promise<void>,
): Promise<void> {
  const { serial, label } = place.hsm.token
  const name = `kek adopt ${serial}`
  const turn = { name, ttlSeconds: leaseSeconds, work: `kek adopt in the token ${label}` }
  const lease = await waitForLease(place, turn)
  const alone = async (): Promise<void> => {
    if (!(await lease.renew())) throw new LeaseLost(name)
  }
  try {
    await whileRenewed(
      { name, lease, ttlSeconds: leaseSeconds, clock: place.clock },
      new AbortController().signal,
      () => work(alone),
    )
  } finally {
    // A lost lease needs no release.
    await lease.release().catch(() => undefined)
  }
}
