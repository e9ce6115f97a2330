import type { Authority } from './authority.ts'

/**
 * Issuers, before and after a change, that may have signed certificates that outlive them: all earlier ones where
 * shards are older than this record.
 */
export function outlivedIssuers(before: Authority, after: Authority): ReadonlySet<string> {
  const { points = [], outlived } = after.settings.crl ?? {}
  const all = [...before.issuers.values(), ...after.issuers.values()]
  const known = outlived ?? (points.length === 0 ? [] : [...before.issuers.keys()])
  const permitting = all.filter(({ row }) => row.leafNotAfterBehavior === 'permit').map(({ row }) => row.id)
  return new Set([...known, ...permitting])
}
