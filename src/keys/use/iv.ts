import { randomFillSync } from 'node:crypto'
import { ivBytes } from './hostcipher.ts'

const pool = Buffer.alloc(ivBytes * 512)
let taken = pool.length

/**
 * 96 random bits from the process's own CSPRNG (OpenSSL's, seeded by the kernel after the process was spawned, so that
 * no two workers share a state), 512 at a time: 0.1 µs, where C_GenerateRandom is a call into the token, and over a
 * network a round trip, for every message. An IV is public; it must only never repeat.
 */
export function freshIv(): Buffer {
  if (taken === pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  const iv = Buffer.from(pool.subarray(taken, taken + ivBytes))
  taken += ivBytes
  return iv
}
