import type { Clock } from '../clock.ts'
import type { Hsm } from '../hsm/hsm.ts'
import { whileRenewed } from '../jobs/renewal.ts'
import type { Alone } from '../keys/cluster/alone.ts'
import type { Database } from '../store/database.ts'
import { LeaseLost } from '../store/faults.ts'

/** As long as a dead run keeps the next one waiting. */
const leaseSeconds = 15
const pauseMilliseconds = 250

/**
 * Brings KEKs into a token while nobody else does: two runs at once would make the same KEK twice, which is no KEK any
 * more, and each destroy the other's when it fails over that.
 * @param work asks before each step that another run must not take as well: a process that was stopped for longer than
 *   its lease lasts is not alone any more when it goes on
 * @throws Error while another process does so
 */
export async function adoptingAlone(
  { clock, database, hsm }: { readonly clock: Clock; readonly database: Database; readonly hsm: Hsm },
  work: (alone: Alone) => Promise<void>,
): Promise<void> {
  const name = `kek adopt ${hsm.token.serial}`
  const end = clock.monotonic() + 1000 * (leaseSeconds + 5)
  let lease = await database.jobLease(name, leaseSeconds)
  while (lease === undefined) {
    if (clock.monotonic() > end)
      throw new Error(
        `another kek adopt is under way in the token ${hsm.token.label}: run it again when that has ended`,
      )
    await clock.sleep(pauseMilliseconds)
    lease = await database.jobLease(name, leaseSeconds)
  }
  const held = lease
  const alone = async (): Promise<void> => {
    if (!(await held.renew())) throw new LeaseLost(name)
  }
  try {
    await whileRenewed({ name, lease, ttlSeconds: leaseSeconds, clock }, new AbortController().signal, () =>
      work(alone),
    )
  } finally {
    // A lost lease needs no release.
    await lease.release().catch(() => undefined)
  }
}
