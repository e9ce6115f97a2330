import { hash } from 'node:crypto'

/** Leaf numbers of a group: 256 for hashes, the others for tables that have a leaf to themselves. */
const leavesPerGroup = 512

/** Small tables that many requests read: changes elsewhere never cost them a refill. */
const ownLeaves: ReadonlyMap<string, number> = new Map([
  ['policies', 256],
  ['mounts', 257],
  ['audit_devices', 258],
  ['system_settings', 259],
])

/**
 * Certificates change a hundred times a second during mass revocation: they have groups of their own, so that other
 * tables' caches lose nothing, and few leaves in each, since a poll reads all leaves of a changed group.
 */
const certificates = { table: 'pki_certificates', firstGroup: 256, groups: 128, leaves: 64 } as const

/**
 * The leaf of the cached value (table, id); the same on every node and in every version of the program. Hashes fall
 * into groups 0 to 255, those of certificates into 256 to 383.
 */
export function leafOf(table: string, id: string): number {
  // A string with a character for each byte costs less than a Buffer.
  const digest = hash('sha256', `${table}\0${id}`, 'binary')
  const [first, second] = [digest.charCodeAt(0), digest.charCodeAt(1)]
  if (table === certificates.table) {
    const group = certificates.firstGroup + (first % certificates.groups)
    return group * leavesPerGroup + (second % certificates.leaves)
  }
  return first * leavesPerGroup + (ownLeaves.get(table) ?? second)
}

/** The group of a leaf. */
export const groupOf = (leaf: number): number => Math.floor(leaf / leavesPerGroup)

/** The first leaf of a group. */
export const firstLeaf = (group: number): number => group * leavesPerGroup

/** SQL for the group of a leaf. */
export const groupOfSql = (leaf: string): string => `${leaf} DIV ${leavesPerGroup}`

/** v of a leaf `l` (its row is made at its first change) of group `g`, whose base counts for it too. */
export const leafVersion = 'COALESCE(l.v, 0) + g.v - g.itemised'
