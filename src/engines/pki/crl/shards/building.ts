import type { Database } from '../../../../store/database.ts'
import type { Reader, Transaction } from '../../../../store/reader.ts'
import { entrySerials } from '../../../../x509/crlentry.ts'
import { issuingDistributionPoint } from '../../../../x509/extensions/issuingdistributionpoint.ts'
import type { OnAlarm } from '../alarm.ts'
import { type Content, nothing } from '../content.ts'
import type { Manifest } from '../manifests.ts'
import type { Segments } from '../segments.ts'
import type { CrlRow } from '../tables.ts'
import type { BuildTarget, ShardSet } from '../target.ts'
import { writeList } from '../writing.ts'
import { cameWithList, type NewShard, type ShardLists, type ShardsName } from './lists.ts'
import { type Shard, shardName, shardNumber, shardsOf } from './shard.ts'
import { Spreading } from './spreading.ts'

interface ShardBuildingOptions {
  readonly database: Database
  readonly segments: Segments
  readonly shardLists: ShardLists
  readonly onAlarm: OnAlarm
}

/** The complete list that the shards come with. */
export interface Whole {
  readonly number: number
  readonly thisUpdate: number
  readonly content: Content
  /** Entries added since the previous complete list; undefined if there is none. */
  readonly since: Content | undefined
}

/** The shards of a complete list. New ones have its number and are published with it: no shard ever lacks an entry. */
export class ShardBuilding {
  readonly #options: ShardBuildingOptions

  constructor(options: ShardBuildingOptions) {
    this.#options = options
  }

  /** Whether every shard of the target was published with the complete list that is out. */
  isOut({ shards }: BuildTarget, manifest: Manifest, name: ShardsName): boolean {
    return shards.every(({ of }) => cameWithList(manifest, name, of))
  }

  /** The shards that need no rebuilding until entries are added to them. @param q the manifest's snapshot */
  async standing(
    q: Reader,
    { shards, crlIssuer }: BuildTarget,
    manifest: Manifest,
    name: ShardsName,
  ): Promise<ReadonlySet<string>> {
    const { shardLists, onAlarm } = this.#options
    const found = new Set<string>()
    for (const set of shards) {
      if (!cameWithList(manifest, name, set.of)) continue
      const rows = await shardLists.all(q, manifest, name, set.of, ({ message }) => {
        const text = `a published shard of a revocation list was changed in the database: ${message}`
        onAlarm({ crlIssuer, site: undefined, text })
      })
      for (const row of rows) if (row !== undefined && carriesPoints(row, set)) found.add(shardName(shardOf(row)))
    }
    return found
  }

  /** Signs all shards of the target, or those that are out of date. */
  async write(
    target: BuildTarget,
    name: ShardsName,
    whole: Whole,
    standing: ReadonlySet<string>,
  ): Promise<readonly NewShard[]> {
    const { database, segments } = this.#options
    const { number, thisUpdate, content } = whole
    const wanted = await this.#wanted(target, whole, standing)
    if (wanted.length === 0) return []
    const { crlIssuer, site } = name
    const contents = target.disabled
      ? undefined
      : await new Spreading({ database, segments, crlIssuer, site }, wanted).spread(content)
    const written: NewShard[] = []
    for (const portion of wanted) {
      const urls = pointsOf(target, portion)
      const own = contents?.get(shardName(portion)) ?? nothing
      const list = await writeList(segments, target, { number, thisUpdate, base: null, content: own, urls })
      written.push({ ...list, portion })
    }
    return written
  }

  /** In a change of the manifest. @returns the new `published` */
  async publish(
    tx: Transaction,
    published: Manifest['published'],
    { shards }: BuildTarget,
    name: ShardsName,
    written: readonly NewShard[],
  ): Promise<Manifest['published']> {
    const { shardLists } = this.#options
    const kept = await shardLists.withdraw(tx, published, name, new Set(shards.map(({ of }) => of)))
    return written.length === 0 ? kept : shardLists.replace(tx, kept, name, written)
  }

  async #wanted(
    { shards, disabled, lacking = false }: BuildTarget,
    { since }: Whole,
    standing: ReadonlySet<string>,
  ): Promise<readonly Shard[]> {
    const all = shards.map(({ of }) => shardsOf(of))
    if (!lacking || disabled || since === undefined) return all.flat()
    const touched = await this.#touched(shards, since)
    return all.flatMap((some) => {
      const wanted = some.filter((shard) => touched.has(shardName(shard)) || !standing.has(shardName(shard)))
      // At least one, so that its number shows that they came with the list (cameWithList).
      return wanted.length > 0 ? wanted : some.slice(0, 1)
    })
  }

  async #touched(shards: readonly ShardSet[], { parts }: Content): Promise<ReadonlySet<string>> {
    const touched = new Set<string>()
    for await (const entries of this.#options.segments.entries(parts)) {
      for (const { serial } of entrySerials(entries)) {
        for (const { of } of shards) touched.add(shardName({ of, number: shardNumber(serial, of) }))
      }
    }
    return touched
  }
}

const shardOf = ({ shard, shards }: CrlRow): Shard => ({ number: shard, of: shards })

const written = (urls: readonly string[], portion: Shard): readonly string[] =>
  urls.map((url) => url.replaceAll('{{shard}}', shardName(portion)))

/** The distribution points in the certificates of a shard. */
function pointsOf({ shards }: BuildTarget, portion: Shard): readonly string[] {
  const set = shards.find(({ of }) => of === portion.of)
  if (set === undefined) throw new Error('a shard of a count that was not asked for')
  return written(set.urls, portion)
}

/** Whether a shard names all the distribution points that its certificates have by now. */
export const carriesPoints = (row: CrlRow, { urls }: ShardSet): boolean =>
  row.tail.includes(issuingDistributionPoint(written(urls, shardOf(row))).value)
