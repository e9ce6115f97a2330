import type { Clock } from '../clock.ts'
import { LeaseLost } from '../store/faults.ts'
import type { JobLease } from '../store/lease.ts'

interface Held {
  readonly name: string
  readonly lease: JobLease
  readonly ttlSeconds: number
  readonly clock: Clock
}

/** Renewals within the time of a lease. */
const renewals = 3

/**
 * Does work under a lease, which is renewed until the work has ended.
 * @param work its signal aborts together with the given one, and when the lease was taken over or could not be renewed
 *   in time
 */
export async function whileRenewed(
  held: Held,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ended = new AbortController()
  const stop = new AbortController()
  const follow = (): void => stop.abort(signal.reason)
  if (signal.aborted) follow()
  signal.addEventListener('abort', follow, { once: true })
  const renewing = renew(held, ended.signal).catch((error: unknown) => stop.abort(error))
  try {
    await work(stop.signal)
  } finally {
    signal.removeEventListener('abort', follow)
    ended.abort()
    await renewing
  }
}

/** @throws LeaseLost; Error when no renewal was answered in time, before another process can take the lease */
async function renew({ name, lease, ttlSeconds, clock }: Held, ended: AbortSignal): Promise<void> {
  const ttlMilliseconds = ttlSeconds * 1000
  const pauseMilliseconds = ttlMilliseconds / renewals
  for (let since = clock.monotonic(); ; ) {
    await sleep(clock, pauseMilliseconds, ended)
    if (ended.aborted) return
    const asked = clock.monotonic()
    const end = since + ttlMilliseconds - pauseMilliseconds / 2
    const renewed = await answerBy(clock, end, () => lease.renew())
    if (renewed === false) throw new LeaseLost(name)
    if (renewed) since = asked
    else if (clock.monotonic() + pauseMilliseconds > end) throw new Error(`the lease of ${name} could not be renewed`)
  }
}

/** The answer; undefined on an error, or if there is none by the given time. */
async function answerBy(clock: Clock, end: number, ask: () => Promise<boolean>): Promise<boolean | undefined> {
  const answered = new AbortController()
  const late = sleep(clock, end - clock.monotonic(), answered.signal).then(() => undefined)
  try {
    return await Promise.race([ask().catch(() => undefined), late])
  } finally {
    answered.abort()
  }
}

const sleep = (clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> =>
  clock.sleep(milliseconds, signal).catch(() => undefined)
