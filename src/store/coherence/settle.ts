import type { Clock } from '../../clock.ts'
import { isPassing } from '../faults.ts'
import type { LeaseTimes } from './coherence.ts'
import type { Pending, Registry } from './registry.ts'

const longestPauseMilliseconds = 20

/**
 * A writer's wait after its COMMIT: until every worker that was registered then has acknowledged these buckets, or
 * until what silent ones hold has died of age. Those are condemned, so that they are not waited for much longer.
 */
export async function settle(
  registry: Registry,
  clock: Clock,
  times: LeaseTimes,
  buckets: readonly number[],
): Promise<void> {
  const end = clock.monotonic() + times.leaseMilliseconds + times.marginMilliseconds
  let waitedFor: Pending[] | undefined
  for (let pause = 1; ; pause = Math.min(2 * pause, longestPauseMilliseconds)) {
    const pending = await look(registry, buckets)
    const expected = new Map((waitedFor ?? pending)?.map((one) => [key(one), one.v]))
    waitedFor ??= pending
    const late = pending?.filter((one) => one.acknowledged < (expected.get(key(one)) ?? -1))
    if (late?.length === 0) return
    const left = end - clock.monotonic()
    if (left <= 0) {
      if (late) await condemn(registry, late)
      return
    }
    await clock.sleep(Math.min(pause, left))
  }
}

const key = ({ registration, bucket }: Pending): string => `${registration} ${bucket}`

/** Undefined when the database does not answer: time alone then decides, which is as good. */
async function look(registry: Registry, buckets: readonly number[]): Promise<Pending[] | undefined> {
  try {
    return await registry.pending(buckets)
  } catch (error) {
    if (isPassing(error)) return undefined
    throw error
  }
}

async function condemn(registry: Registry, late: readonly Pending[]): Promise<void> {
  try {
    await registry.condemn([...new Set(late.map(({ registration }) => registration))])
  } catch (error) {
    if (!isPassing(error)) throw error
  }
}
