import type { Clock } from '../clock.ts'
import type { Hsm } from '../hsm/hsm.ts'
import { whileRenewed } from '../jobs/renewal.ts'
import type { Database } from '../store/database.ts'

/** As long as a dead run keeps the next one waiting. */
const leaseSeconds = 15
const pauseMilliseconds = 250

/**
 * Brings KEKs into a token while nobody else does: two runs at once would make the same KEK twice, which is no KEK any
 * more, and each destroy the other's when it fails over that.
 * @throws Error while another process does so
 */
export async function adoptingAlone(
  { clock, database, hsm }: { readonly clock: Clock; readonly database: Database; readonly hsm: Hsm },
  work: () => Promise<void>,
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
  try {
    await whileRenewed({ name, lease, ttlSeconds: leaseSeconds, clock }, new AbortController().signal, work)
  } finally {
    // A lost lease needs no release.
    await lease.release().catch(() => undefined)
  }
}
