import { after } from '../../../after.ts'
import type { MaybePromise } from '../../../route.ts'
import type { CoherentCache } from '../../../store/coherence/cache.ts'
import type { Database } from '../../../store/database.ts'
import type { Reader } from '../../../store/reader.ts'
import { listCacheKey, nameOfKey } from '../crl/list.ts'
import type { Lists } from '../crl/lists.ts'
import type { Shard } from '../crl/shards/shard.ts'
import { type CrlRow, crlsTable, type Kind, type Scope, siteOf } from '../crl/tables.ts'

/** A list as this site sees it. `mount` is a uuid. */
export interface ListQuery {
  readonly mount: string
  readonly crlIssuer: string
  readonly scope: Scope
  readonly kind: Kind
  /** In place of the list with all entries. */
  readonly portion?: Shard | undefined
}

/** A missing list is cached too, or unauthenticated requests for it would all reach the database. */
interface Found {
  readonly row: CrlRow | undefined
}

const listsHeld = 10_000

interface ListCacheOptions {
  readonly database: Database
  readonly lists: Pick<Lists, 'find'>
  /** This node's. */
  readonly site: string
}

/** The published lists of this site, each never older than the last acknowledged one. */
export class ListCache {
  readonly #options: ListCacheOptions
  readonly #cache: CoherentCache<Found>

  constructor(options: ListCacheOptions) {
    this.#options = options
    this.#cache = options.database.cache({
      table: crlsTable.name,
      limit: listsHeld,
      lane: 'public',
      load: (q, key) => this.#load(q, key),
    })
  }

  /** @throws DamagedRow for a list that is not the one published last; ApiError 503 when the public lane is full */
  find(query: ListQuery): MaybePromise<CrlRow | undefined> {
    return after(this.#cache.get(this.#key(query)), (found) => found?.row)
  }

  /** As find, but not through the public lane if it is not cached. @throws DamagedRow */
  async read(query: ListQuery): Promise<CrlRow | undefined> {
    const key = this.#key(query)
    const found = this.#cache.peek(key) ?? (await this.#options.database.snapshot((q) => this.#load(q, key)))
    return found.row
  }

  #key(query: ListQuery): string {
    return listCacheKey({ ...query, site: siteOf(query.scope, this.#options.site) })
  }

  async #load(q: Reader, key: string): Promise<Found> {
    const at = key.lastIndexOf(' ')
    return { row: await this.#options.lists.find(q, nameOfKey(key.slice(at + 1), key.slice(0, at))) }
  }
}
