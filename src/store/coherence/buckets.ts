import { createHash } from 'node:crypto'

/** Rows of `versions`. */
export const bucketCount = 256

/** The bucket of what caches hold under (table, id); the same on every node and in every version of the program. */
export const bucketOf = (table: string, id: string): number =>
  createHash('sha256').update(`${table}\0${id}`).digest().readUInt8(0)
