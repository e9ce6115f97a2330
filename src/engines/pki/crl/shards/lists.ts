import type { Database } from '../../../../store/database.ts'
import { DamagedRow } from '../../../../store/faults.ts'
import type { Reader, Transaction } from '../../../../store/reader.ts'
import type { SealedAccess } from '../../../../store/sealed/access.ts'
import { between, column, defineTable, type New } from '../../../../store/table.ts'
import { type ListName, listCacheKey, listKey, nameOfKey } from '../list.ts'
import { checked } from '../lists.ts'
import type { Manifest } from '../manifests.ts'
import { type CrlRow, crlsTable } from '../tables.ts'
import { type Shard, shardsOf } from './shard.ts'

/** Which rows claim to be shards; nothing is verified. */
const placesTable = defineTable(
  crlsTable.name,
  {
    id: column.text(),
    mount: column.text(),
    site: column.text(),
    crlIssuer: column.hex(),
    scope: column.text(),
    kind: column.text(),
    shards: column.integer(),
    shard: column.integer(),
  },
  { sealed: false },
)

type Published = Manifest['published']
/** The name of the complete list that has all the shards' entries. */
export type ShardsName = Omit<ListName, 'portion'>
/** A shard as it was signed. */
export type NewShard = Omit<New<typeof crlsTable>, 'shards' | 'shard' | keyof ShardsName> & { readonly portion: Shard }

/**
 * Whether all shards of a count are published, and came with the complete list: at least one then has its number.
 * During an upgrade, workers of a version without shards publish complete lists alone.
 */
export function cameWithList({ published }: Pick<Manifest, 'published'>, name: ShardsName, of: number): boolean {
  const numbers = shardsOf(of).map((portion) => published[listKey({ ...name, portion })] ?? Number.NaN)
  return Math.max(...numbers) === published[listKey(name)]
}

/** The published shards of lists, one shard count at a time. */
export class ShardLists {
  readonly #database: Database
  readonly #table: SealedAccess<typeof crlsTable>

  constructor(database: Database) {
    this.#database = database
    this.#table = database.table(crlsTable)
  }

  /**
   * All shards of a count, in order; undefined for one that was never published, or was edited, removed or put back.
   * @param q the manifest's snapshot @param onDamage told of each damaged one
   */
  async all(
    q: Reader,
    manifest: Manifest,
    name: ShardsName,
    of: number,
    onDamage: (damage: DamagedRow) => void = () => undefined,
  ): Promise<(CrlRow | undefined)[]> {
    const { mount, site, crlIssuer, scope, kind } = name
    // Forged rows with other numbers must not crowd these off the page.
    const where = { mount, site, crlIssuer, scope, kind, shards: of, shard: between(1, of) }
    const places = await this.#database.unverified(placesTable).list(q, where, { by: 'shard', limit: of })
    const ids = places.map(({ id }) => id)
    const rows = new Map((await this.#table.sound(q, ids)).map((row) => [row.shard, row]))
    return shardsOf(of).map((portion) => {
      const row = rows.get(portion.number)
      if (row === undefined && manifest.published[listKey({ ...name, portion })] === undefined) return undefined
      try {
        return checked(manifest, { ...name, portion }, row)
      } catch (error) {
        if (!(error instanceof DamagedRow)) throw error
        onDamage(error)
        return undefined
      }
    })
  }

  /**
   * Puts new shards in the places of old ones, in a change of the manifest.
   * @returns the new `published`
   */
  async replace(
    tx: Transaction,
    published: Published,
    name: ShardsName,
    lists: readonly NewShard[],
  ): Promise<Published> {
    const { mount, site, crlIssuer, scope, kind } = name
    for (const [from, to] of runsOf(lists.map(({ portion }) => portion))) {
      const shard = between(from.number, to.number)
      await this.#table.removeWhere(tx, { mount, site, crlIssuer, scope, kind, shards: from.of, shard })
    }
    const rows = lists.map(({ portion: { of, number }, ...list }) => ({ ...name, ...list, shards: of, shard: number }))
    await this.#table.insertMany(tx, rows)
    const out: Record<string, number> = { ...published }
    for (const { portion, number } of lists) {
      out[listKey({ ...name, portion })] = number
      tx.touch(crlsTable.name, listCacheKey({ ...name, portion }))
    }
    return out
  }

  /**
   * Removes the shards of counts that are no longer wanted, in a change of the manifest.
   * @param kept counts that stay @returns the new `published`
   */
  async withdraw(
    tx: Transaction,
    published: Published,
    name: ShardsName,
    kept: ReadonlySet<number>,
  ): Promise<Published> {
    const start = `${listKey(name)} `
    const ended = new Map<string, Shard>()
    for (const key of Object.keys(published)) {
      const { portion } = nameOfKey(name.crlIssuer, key)
      if (key.startsWith(start) && portion !== undefined && !kept.has(portion.of)) ended.set(key, portion)
    }
    if (ended.size === 0) return published
    const { mount, site, crlIssuer, scope, kind } = name
    for (const shards of new Set([...ended.values()].map(({ of }) => of))) {
      await this.#table.removeWhere(tx, { mount, site, crlIssuer, scope, kind, shards })
    }
    for (const portion of ended.values()) tx.touch(crlsTable.name, listCacheKey({ ...name, portion }))
    return Object.fromEntries(Object.entries(published).filter(([key]) => !ended.has(key)))
  }
}

/** Runs of neighbouring shards, each by its first and last, so that few statements remove many. */
function runsOf(shards: readonly Shard[]): readonly (readonly [Shard, Shard])[] {
  const runs: [Shard, Shard][] = []
  for (const shard of shards.toSorted((a, b) => a.of - b.of || a.number - b.number)) {
    const last = runs.at(-1)
    if (last !== undefined && last[1].of === shard.of && last[1].number + 1 === shard.number) last[1] = shard
    else runs.push([shard, shard])
  }
  return runs
}
