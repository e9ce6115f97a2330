import { digest, type Hash } from './hashes.ts'

/** MGF1 (RFC 8017 appendix B.2.1): `bytes` bytes of mask from a seed. */
export function mgf1(seed: Uint8Array, bytes: number, hash: Hash): Buffer {
  const blocks: Buffer[] = []
  const input = Buffer.concat([seed, Buffer.alloc(4)])
  for (let index = 0; index * hash.bytes < bytes; index += 1) {
    input.writeUInt32BE(index, seed.length)
    blocks.push(digest(hash, input))
  }
  // The input of OAEP's mask is as secret as the message.
  input.fill(0)
  return Buffer.concat(blocks, bytes)
}

/** target ^= mask, in place; the mask has the same length. */
export function xor(target: Uint8Array, mask: Uint8Array): void {
  for (let index = 0; index < target.length; index++) target[index] = (target[index] ?? 0) ^ (mask[index] ?? 0)
}
