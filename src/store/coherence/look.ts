import { places } from '../places.ts'
import type { Stored } from '../table.ts'

/** All registrations, condemned ones included, and their acknowledgements in rows: for writers that wait. */
export interface Look {
  /** Each with the shared log that it reads, if it reads one. */
  readonly registrations: ReadonlyMap<string, string | undefined>
  readonly acknowledged: ReadonlyMap<string, ReadonlyMap<number, number>>
  /** The longest lease of any of them. */
  readonly leaseMilliseconds: number
}

const registered = '`schema` s LEFT JOIN registrations r ON s.id = 1'

/** Select list and FROM clause of the look sent along with a COMMIT: nothing can be acknowledged yet at that moment. */
export const lookSql = `r.id, r.lease_milliseconds, r.shared_log FROM ${registered}`

/** Select list and FROM clause of a look at the acknowledgements of these groups. */
export const lookAt = (
  groups: readonly number[],
): string => `r.id, r.lease_milliseconds, r.shared_log, a.bucket, a.v FROM ${registered}
  LEFT JOIN acks a ON a.registration = r.id AND a.bucket IN (${places(groups)})`

/** Reads the answer to either look. */
export function lookOf(rows: readonly (readonly Stored[])[]): Look {
  const registrations = new Map<string, string | undefined>()
  const acknowledged = new Map<string, Map<number, number>>()
  let leaseMilliseconds = 0
  for (const [id, lease, log, group, v] of rows) {
    // Without registrations there is one row of NULLs.
    if (id === null) continue
    registrations.set(String(id), log === null ? undefined : String(log))
    const acks = acknowledged.get(String(id)) ?? new Map<number, number>()
    acknowledged.set(String(id), acks)
    if (group !== null && group !== undefined) acks.set(Number(group), Number(v))
    leaseMilliseconds = Math.max(leaseMilliseconds, Number(lease))
  }
  return { registrations, acknowledged, leaseMilliseconds }
}
