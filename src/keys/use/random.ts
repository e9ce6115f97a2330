import { randomBytes } from 'node:crypto'
import type { Hsm } from '../../hsm/hsm.ts'
import type { MaybePromise } from '../../route.ts'

/** platform: the host's CSPRNG; seal: the token's generator; all: both, XORed, as good as the better of the two. */
export type RandomSource = 'platform' | 'seal' | 'all'

/** @param bytes how many, at least 1 */
export function random(hsm: Hsm, source: RandomSource, bytes: number): MaybePromise<Buffer> {
  if (source === 'platform') return randomBytes(bytes)
  const drawn = hsm.random(bytes)
  if (source === 'seal') return drawn
  return drawn instanceof Promise ? drawn.then(mixed) : mixed(drawn)
}

function mixed(drawn: Buffer): Buffer {
  const other = randomBytes(drawn.length)
  for (const [at, byte] of other.entries()) drawn[at] = (drawn[at] ?? 0) ^ byte
  other.fill(0)
  return drawn
}
