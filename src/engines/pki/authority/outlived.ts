import type { Authority } from './authority.ts'

/**
 * Issuers of before and after a change that may have signed certificates which end later than they do. Where shards are
 * older than the memory of this, all issuers may have.
 */
export function outlivedIssuers(before: Authority, after: Authority): ReadonlySet<string> {
  const { points = [], outlived } = after.settings.crl ?? {}
  const all = [...before.issuers.values(), ...after.issuers.values()]
  const known = outlived ?? (points.length === 0 ? [] : [...before.issuers.keys()])
  const permitting = all.filter(({ row }) => row.leafNotAfterBehavior === 'permit').map(({ row }) => row.id)
  return new Set([...known, ...permitting])
}
