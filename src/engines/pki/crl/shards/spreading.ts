import type { Database } from '../../../../store/database.ts'
import { entrySerials } from '../../../../x509/crlentry.ts'
import type { Content } from '../content.ts'
import { mostEntries, type Segments } from '../segments.ts'
import type { Part } from '../tables.ts'
import { type Shard, shardName, shardNumber } from './shard.ts'

/** Portions that are stored together: 2.5 MB. */
const portionsAtOnce = 32

interface SpreadingOptions {
  readonly database: Database
  readonly segments: Segments
  /** Of the segments that it writes. */
  readonly crlIssuer: string
  readonly site: string
}

/** The entries collected for a shard. */
interface Bucket {
  readonly parts: Part[]
  bytes: number
  /** Entries not stored yet. */
  count: number
  pieces: Buffer[]
}

/**
 * Spreads entries over shards in one pass. A shard's entries are stored in segments that only its list names, so that
 * few are in memory at a time.
 */
export class Spreading {
  readonly #options: SpreadingOptions
  readonly #buckets: ReadonlyMap<string, Bucket>
  /** By count, the bucket of each wanted shard. */
  readonly #byCount: ReadonlyMap<number, (Bucket | undefined)[]>
  #full: { readonly bucket: Bucket; readonly entries: Buffer }[] = []

  constructor(options: SpreadingOptions, wanted: readonly Shard[]) {
    this.#options = options
    this.#buckets = new Map(wanted.map((shard) => [shardName(shard), { parts: [], bytes: 0, count: 0, pieces: [] }]))
    const byCount = new Map<number, (Bucket | undefined)[]>()
    for (const shard of wanted) {
      const places = byCount.get(shard.of) ?? []
      places[shard.number] = this.#buckets.get(shardName(shard))
      byCount.set(shard.of, places)
    }
    this.#byCount = byCount
  }

  /**
   * @returns the content of each wanted shard, by its name @throws DamagedRow for a segment that was edited or removed
   */
  async spread({ parts: all, covered }: Content): Promise<ReadonlyMap<string, Content>> {
    for await (const entries of this.#options.segments.entries(all)) {
      this.#sort(entries)
      if (this.#full.length >= portionsAtOnce) await this.#store()
    }
    for (const bucket of this.#buckets.values()) if (bucket.count > 0) this.#close(bucket)
    while (this.#full.length > 0) await this.#store()
    return new Map(
      [...this.#buckets].map(([name, { parts, bytes }]) => [name, { parts, bytes, unmeasured: [], covered }]),
    )
  }

  #sort(entries: Buffer): void {
    const came = new Map<Bucket, Buffer[]>()
    for (const { serial, der } of entrySerials(entries)) {
      for (const [of, places] of this.#byCount) {
        const bucket = places[shardNumber(serial, of)]
        if (bucket === undefined) continue
        const some = came.get(bucket)
        if (some === undefined) came.set(bucket, [der])
        else some.push(der)
      }
    }
    for (const [bucket, some] of came) {
      // Copied: a view would hold the whole segment in memory.
      const piece = Buffer.concat(some)
      bucket.pieces.push(piece)
      bucket.bytes += piece.length
      bucket.count += some.length
      if (bucket.count >= mostEntries) this.#close(bucket)
    }
  }

  #close(bucket: Bucket): void {
    this.#full.push({ bucket, entries: Buffer.concat(bucket.pieces) })
    bucket.pieces = []
    bucket.count = 0
  }

  async #store(): Promise<void> {
    const { database, segments, crlIssuer, site } = this.#options
    const some = this.#full.splice(0, portionsAtOnce)
    const portions = some.map(({ entries }) => entries)
    const ids = await database.transaction((tx) => segments.insertUnnamed(tx, crlIssuer, site, portions))
    for (const [index, { bucket }] of some.entries()) bucket.parts.push({ segment: ids[index] as string, from: 0 })
  }
}
