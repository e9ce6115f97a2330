const longestChunk = 128

/**
 * An immutable list in the order of a text key that no two items share. A change copies the chunks that it meets; the
 * list before it stays as it is and shares the others.
 */
export class SortedList<T> implements Iterable<T> {
  readonly size: number
  /** The items in their order. What is derived from a chunk can be kept by the chunk's identity. */
  readonly chunks: readonly (readonly T[])[]
  readonly #keyOf: (item: T) => string

  private constructor(keyOf: (item: T) => string, chunks: readonly (readonly T[])[]) {
    this.#keyOf = keyOf
    this.chunks = chunks
    this.size = chunks.reduce((sum, { length }) => sum + length, 0)
  }

  static of<T>(keyOf: (item: T) => string, items: Iterable<T> = []): SortedList<T> {
    return new SortedList(keyOf, inChunks(inOrder(keyOf, [...items])))
  }

  get(key: string): T | undefined {
    const item = this.from(key)
    return item !== undefined && this.#keyOf(item) === key ? item : undefined
  }

  /** The first item whose key is this one or comes after it. */
  from(key: string): T | undefined {
    const index = this.#chunkOf(key)
    const chunk = this.chunks[index] ?? []
    return chunk[countBefore(chunk, (item) => this.#keyOf(item) < key)] ?? this.chunks[index + 1]?.[0]
  }

  /**
   * The list without some items and with others.
   * @param gone keys of items that leave @param news items that come, or replace those of the same keys
   */
  changed(gone: Iterable<string>, news: Iterable<T>): SortedList<T> {
    const coming = Map.groupBy(news, (item) => this.#chunkOf(this.#keyOf(item)))
    const leaving = new Set([...gone, ...[...coming.values()].flat().map(this.#keyOf)])
    const met = new Set([...leaving].map((key) => this.#chunkOf(key)))
    const chunks = this.chunks.length === 0 ? [[]] : this.chunks
    return new SortedList(
      this.#keyOf,
      chunks.flatMap((chunk, index) => {
        if (!met.has(index)) return [chunk]
        const kept = chunk.filter((item) => !leaving.has(this.#keyOf(item)))
        return inChunks(inOrder(this.#keyOf, [...kept, ...(coming.get(index) ?? [])]))
      }),
    )
  }

  *[Symbol.iterator](): Generator<T, void> {
    for (const chunk of this.chunks) yield* chunk
  }

  /** The index of the chunk that has this key, or would have it. */
  #chunkOf(key: string): number {
    return Math.max(0, countBefore(this.chunks, ([first]) => first !== undefined && this.#keyOf(first) <= key) - 1)
  }
}

const inOrder = <T>(keyOf: (item: T) => string, items: T[]): T[] =>
  items.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))

/** A long chunk becomes several that have room. */
function inChunks<T>(items: readonly T[]): (readonly T[])[] {
  if (items.length <= longestChunk) return items.length === 0 ? [] : [items]
  const chunks: T[][] = []
  for (let at = 0; at < items.length; at += longestChunk / 2) chunks.push(items.slice(at, at + longestChunk / 2))
  return chunks
}

/** How many items, all of them at the beginning, fulfil a condition. */
function countBefore<T>(items: readonly T[], fulfils: (item: T) => boolean): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (fulfils(items[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}
