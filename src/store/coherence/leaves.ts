import { createHash } from 'node:crypto'

/** Numbers of leaves in a group: 256 that hashes fall into, and leaves of tables that share theirs with no other. */
const leavesPerGroup = 512

/** Tables of few rows that many requests read: what else changes never costs them a refill. */
const ownLeaves: ReadonlyMap<string, number> = new Map([
  ['policies', 256],
  ['mounts', 257],
  ['audit_devices', 258],
])

/**
 * Certificates change a hundred times a second while many are revoked: groups of their own, so that no other table's cache
 * loses anything by it, with few leaves each, since a poll reads all leaves of a changed group.
 */
const certificates = { table: 'pki_certificates', firstGroup: 256, groups: 128, leaves: 64 } as const

/**
 * The leaf of what caches hold under (table, id); the same on every node and in every version of the program. Hashes
 * fall into groups 0 to 255, those of certificates into 256 to 383.
 */
export function leafOf(table: string, id: string): number {
  const hash = createHash('sha256').update(`${table}\0${id}`).digest()
  if (table === certificates.table) {
    const group = certificates.firstGroup + (hash.readUInt8(0) % certificates.groups)
    return group * leavesPerGroup + (hash.readUInt8(1) % certificates.leaves)
  }
  return hash.readUInt8(0) * leavesPerGroup + (ownLeaves.get(table) ?? hash.readUInt8(1))
}

export const groupOf = (leaf: number): number => Math.floor(leaf / leavesPerGroup)

/** The first leaf of a group. */
export const firstLeaf = (group: number): number => group * leavesPerGroup

/** SQL for the group of a leaf. */
export const groupOfSql = (leaf: string): string => `${leaf} DIV ${leavesPerGroup}`
