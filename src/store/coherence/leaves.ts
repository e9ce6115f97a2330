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
 * The leaf of what caches hold under (table, id); the same on every node and in every version of the program. Hashes
 * fall into groups 0 to 255.
 */
export function leafOf(table: string, id: string): number {
  const hash = createHash('sha256').update(`${table}\0${id}`).digest()
  return hash.readUInt8(0) * leavesPerGroup + (ownLeaves.get(table) ?? hash.readUInt8(1))
}

export const groupOf = (leaf: number): number => Math.floor(leaf / leavesPerGroup)

/** The first leaf of a group. */
export const firstLeaf = (group: number): number => group * leavesPerGroup

/** SQL for the group of a leaf. */
export const groupOfSql = (leaf: string): string => `${leaf} DIV ${leavesPerGroup}`
