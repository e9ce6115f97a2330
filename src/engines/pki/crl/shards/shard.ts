/** One of the lists over which the certificates of a CRL issuer are spread: the third of eight is `3-of-8`. */
export interface Shard {
  /** From 1. */
  readonly number: number
  readonly of: number
}

/** Serial numbers are told apart by bits of their last byte. */
export const mostShards = 256

/** A power of two, so that the low bits of a serial number say where it belongs. */
export const isShardCount = (count: number): boolean =>
  Number.isInteger(count) && count >= 2 && count <= mostShards && (count & (count - 1)) === 0

/**
 * The permanent shard of a serial number: its last bits, which are random in those made here. Any other serial number
 * has a shard too. @param serial magnitude @param of a shard count
 */
export const shardNumber = (serial: Uint8Array, of: number): number => ((serial.at(-1) ?? 0) & (of - 1)) + 1

/** All shards of a count, in order. */
export const shardsOf = (of: number): readonly Shard[] =>
  Array.from({ length: of }, (_, index) => ({ number: index + 1, of }))

/** Its name in paths and URLs. */
export const shardName = ({ number, of }: Shard): string => `${number}-of-${of}`

/** @returns undefined for a text that names no shard */
export function parseShard(text: string): Shard | undefined {
  const [, number = '', of = ''] = /^([1-9]\d{0,2})-of-([1-9]\d{0,2})$/.exec(text) ?? []
  const shard = { number: Number(number), of: Number(of) }
  return isShardCount(shard.of) && shard.number >= 1 && shard.number <= shard.of ? shard : undefined
}
