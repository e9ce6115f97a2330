import { createHash, timingSafeEqual } from 'node:crypto'
import { randomSecret } from '../../crypto/randomtext.ts'
import type { Database } from '../../store/database.ts'
import { clusterTable } from '../tables.ts'

/** A new unseal secret and its stored hash: it has 256 bits, so that a plain hash is enough. */
export function makeUnsealSecret(): { secret: string; hash: Buffer } {
  const secret = randomSecret()
  return { secret, hash: hashOf(secret) }
}

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()

/** Compares in constant time. */
export const unseals = (hash: Buffer | null, secret: string): boolean =>
  hash?.length === 32 && timingSafeEqual(hash, hashOf(secret))

/**
 * The hash of the unseal secret as the settings row claims it. The row cannot be verified before the login, so a caller
 * that admits somebody by it compares it with the verified one afterwards.
 */
export async function claimedUnsealHash(database: Database): Promise<Buffer | null> {
  const [row] = await database.read((q) => database.unverified(clusterTable).list(q, {}, { by: 'id', limit: 1 }))
  return row?.unsealHash ?? null
}
