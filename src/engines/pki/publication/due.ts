import type { CrlSettings } from '../crl/settings.ts'
import type { CrlRow, Kind } from '../crl/tables.ts'
import { millisecondsOf } from './settings.ts'

/** The published lists of a group of issuers. */
export interface Standing {
  readonly complete: CrlRow | undefined
  readonly delta: CrlRow | undefined
}

/** By site, the number of the last revocation. */
export type LastRevocations = Readonly<Record<string, number>>

/**
 * The kind of list that must be built now, if any. A complete list is built when there is none, before it expires, and
 * without auto_rebuild when it lacks a revocation (its build failed then, or another mount recorded it). The reference
 * lets a list expire if nobody rebuilds it; here it is rebuilt in any case, since a relying party without a list
 * accepts every certificate or rejects them all.
 */
export function dueKind(
  settings: CrlSettings,
  { complete, delta }: Standing,
  last: LastRevocations,
  now: number,
): Kind | undefined {
  if (complete === undefined || isDue(settings, complete, now)) return 'complete'
  if (settings.disable) return undefined
  if (!settings.autoRebuild) return lacks(complete, last) ? 'complete' : undefined
  if (!settings.enableDelta) return undefined
  if (delta === undefined) return 'delta'
  const elapsed = now - delta.thisUpdate >= millisecondsOf(settings.deltaRebuildInterval)
  return elapsed && lacks(delta, last) ? 'delta' : undefined
}

/**
 * Whether a list is about to expire, or its path has served a higher number (RFC 5280 section 5.2.3): one of the same
 * second may have been built before that.
 */
export const isDue = (settings: CrlSettings, list: CrlRow, now: number): boolean =>
  now > list.nextUpdate - graceOf(settings, list) ||
  list.thisUpdate <= (settings.localSince ?? Number.NEGATIVE_INFINITY)

/** How long before its end a list is rebuilt. Without auto_rebuild the setting was not checked against the expiry. */
function graceOf({ autoRebuild, autoRebuildGracePeriod }: CrlSettings, { thisUpdate, nextUpdate }: CrlRow): number {
  const grace = millisecondsOf(autoRebuildGracePeriod)
  return autoRebuild ? grace : Math.min(grace, (nextUpdate - thisUpdate) / 2)
}

/** The job runs once a minute, and a build takes seconds. */
const lateMilliseconds = 300_000

/** Whether a list should have been replaced by now: it is about to expire. */
export const isLate = (settings: CrlSettings, list: CrlRow, now: number): boolean =>
  now > Math.min(list.nextUpdate - graceOf(settings, list) + lateMilliseconds, list.nextUpdate)

/** Whether a revocation is on record that the list does not take into account. */
const lacks = ({ covered }: CrlRow, last: LastRevocations): boolean =>
  Object.entries(last).some(([site, number]) => (covered[site] ?? 0) < number)
