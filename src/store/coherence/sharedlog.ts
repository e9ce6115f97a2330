import { readSync } from 'node:fs'
import type { SharedLogPlace, Version } from '../../workload.ts'
import type { Versions } from './increments.ts'
import {
  countAt,
  decode,
  encode,
  entryBytes,
  entryOf,
  kinds,
  numberBits,
  numberIn,
  numbersIn,
  pieces,
  recordBytes,
  ringRecords,
  ringsAt,
  writeAll,
} from './ring.ts'
import type { Group } from './versions.ts'

/** What others have logged since; `lost` when some of it was overwritten before it was read. */
export interface News extends Versions {
  /**
   * Groups of which polls have read all leaves: their versions are among `leaves`, here or earlier in the log, unless
   * the one who polled had learned them before the log began.
   */
  readonly polled: readonly Group[]
  readonly lost: boolean
}

/** What another process is writing is whole within microseconds. */
const readAttempts = 100

/**
 * A log of commits in memory that the workers of a node share. Each appends to a ring of its own, and reads the rings
 * of all before it uses its cache: a commit that is in the log before it is answered is seen by every use after the answer,
 * so that nobody has to be told or to confirm. Where there is no news, reading costs one system call.
 */
export class SharedLog {
  readonly id: string
  readonly #descriptor: number
  readonly #ring: number
  /** The head, as far as its records are read. */
  #head: Buffer
  #scratch: Buffer

  /**
   * From now on, `news` tells what is appended.
   * @throws Error when this log does not lie at the descriptor
   */
  constructor({ id, descriptor, slot }: SharedLogPlace) {
    this.id = id
    this.#descriptor = descriptor
    this.#ring = slot
    this.#head = Buffer.alloc(countAt(0))
    this.#head = this.#readHead() ?? this.#head
    this.#scratch = Buffer.alloc(this.#head.length)
    if (!this.#isOurs(this.#head) || this.#head.length <= countAt(slot))
      throw new Error(`descriptor ${descriptor} is not the shared log of this node`)
  }

  /**
   * Appends the versions of a commit, or of a poll. When it returns, all readers find them.
   * @throws Error of the file system, and then readers find none of them
   */
  append({ leaves, groups }: Versions, polled: readonly Group[] = []): void {
    const at = countAt(this.#ring)
    const entry = Buffer.alloc(entryBytes)
    readSync(this.#descriptor, entry, 0, entryBytes, at)
    const count = numberIn(entry, 0) ?? 0
    const records = [
      ...leaves,
      ...groups.map(([group, v]): Version => [kinds.group + group, v]),
      ...polled.flatMap(({ group, v, base }): Version[] => [
        [kinds.polled + group, v],
        [kinds.base + group, base],
      ]),
    ]
    // Of more records than a ring holds, readers find that they are lost.
    if (records.length <= ringRecords) {
      const bytes = encode(count, records)
      for (const { at: place, offset, length } of pieces(this.#ring, count, records.length))
        writeAll(this.#descriptor, bytes.subarray(offset, offset + length), place)
    }
    const next = entryOf(count + records.length)
    writeAll(this.#descriptor, next, at)
    // This process knows them; another instance in it has its own place.
    if (numberIn(this.#head, at) === count) next.copy(this.#head, at)
  }

  /** The versions appended since the last call; undefined when there are none. */
  news(): News | undefined {
    readSync(this.#descriptor, this.#scratch, 0, this.#scratch.length, 0)
    if (this.#scratch.equals(this.#head)) return undefined
    const [before, head] = [numbersIn(this.#head) ?? [], this.#readHead()]
    if (head === undefined || !this.#isOurs(head)) return { ...sorted([]), lost: true }
    this.#head = head
    this.#scratch = Buffer.alloc(head.length)
    const all: Version[] = []
    let lost = false
    const [, ...counts] = numbersIn(head) ?? []
    for (const [ring, to] of counts.entries()) {
      const records = this.#read(ring, before[ring + 1] ?? 0, to)
      if (records === undefined) lost = true
      else all.push(...records)
    }
    return lost || all.length > 0 ? { ...sorted(all), lost } : undefined
  }

  #isOurs(head: Buffer): boolean {
    return head.toString('latin1', 0, this.id.length) === this.id
  }

  /** The head with all rings in use; undefined when a part of it stays unfinished. */
  #readHead(): Buffer | undefined {
    let { length } = this.#head
    for (let attempt = 0; attempt < readAttempts; attempt++) {
      const head = Buffer.alloc(length)
      readSync(this.#descriptor, head, 0, length, 0)
      const wanted = countAt(numberIn(head, ringsAt) ?? 0)
      if (wanted > length) length = wanted
      else if (numbersIn(head) !== undefined) return head
    }
    return undefined
  }

  /** Undefined when they were overwritten meanwhile. */
  #read(ring: number, from: number, to: number): Version[] | undefined {
    if (to === from) return []
    if (to - from > ringRecords || to < from) return undefined
    const bytes = Buffer.alloc((to - from) * recordBytes)
    // Another processor's writes may arrive in any order.
    for (let attempt = 0; attempt < readAttempts; attempt++) {
      for (const { at, offset, length } of pieces(ring, from, to - from))
        readSync(this.#descriptor, bytes, offset, length, at)
      const records = decode(from, bytes)
      if (records !== undefined) return records
    }
    return undefined
  }
}

/** Records by their kinds. */
function sorted(records: readonly Version[]): Omit<News, 'lost'> {
  const leaves: Version[] = []
  const groups: Version[] = []
  const polled: { group: number; v: number; base: number }[] = []
  for (const [place, v] of records) {
    const [kind, number] = [place - (place % (numberBits + 1)), place % (numberBits + 1)]
    if (kind === kinds.leaf) leaves.push([number, v])
    else if (kind === kinds.group) groups.push([number, v])
    else if (kind === kinds.polled) polled.push({ group: number, v, base: 0 })
    else {
      // The base of a group follows its v.
      const last = polled.at(-1)
      if (last?.group === number) last.base = v
    }
  }
  return { leaves, groups, polled }
}
