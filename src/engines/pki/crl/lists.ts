import type { Database } from '../../../store/database.ts'
import { DamagedRow } from '../../../store/faults.ts'
import type { Reader, Transaction } from '../../../store/reader.ts'
import type { SealedAccess } from '../../../store/sealed/access.ts'
import type { New } from '../../../store/table.ts'
import { type ListName, listCacheKey, listKey } from './list.ts'
import type { Manifest, Manifests } from './manifests.ts'
import { type CrlRow, crlsTable } from './tables.ts'

/** Published lists, as named by the manifest of their CRL issuer: an older one put back in SQL is refused. */
export class Lists {
  readonly #table: SealedAccess<typeof crlsTable>
  readonly #manifests: Manifests

  constructor(database: Database, manifests: Manifests) {
    this.#table = database.table(crlsTable)
    this.#manifests = manifests
  }

  /**
   * The published list, if any.
   * @param q a snapshot @throws DamagedRow when it was edited, removed or replaced in SQL
   */
  async find(q: Reader, name: ListName): Promise<CrlRow | undefined> {
    const [manifest, row] = await Promise.all([
      this.#manifests.read(q, name.crlIssuer),
      this.#table.find(q, whereOf(name)),
    ])
    return checked(manifest, name, row)
  }

  /** As `find`, by a manifest of the same moment: for many lists of one CRL issuer. */
  async named(q: Reader, manifest: Manifest, name: ListName): Promise<CrlRow | undefined> {
    return checked(manifest, name, await this.#table.find(q, whereOf(name)))
  }

  /**
   * Replaces the list, in a change of the manifest.
   * @returns the manifest's new `published`; undefined when a list of a higher number is published
   */
  async replace(tx: Transaction, manifest: Manifest, list: New<typeof crlsTable> & ListName) {
    const key = listKey(list)
    if ((manifest.published[key] ?? 0) >= list.number) return undefined
    // Replaces any row there, damaged or not.
    await this.#table.removeWhere(tx, whereOf(list))
    const row = await this.#table.insert(tx, list)
    tx.touch(crlsTable.name, listCacheKey(list))
    return { row, published: { ...manifest.published, [key]: list.number } }
  }
}

/** The columns that name a list. */
const whereOf = ({ mount, site, crlIssuer, scope, kind, portion }: ListName) => ({
  ...{ mount, site, crlIssuer, scope, kind, shards: portion?.of ?? 0, shard: portion?.number ?? 0 },
})

/** @throws DamagedRow */
export function checked(manifest: Manifest, name: ListName, row: CrlRow | undefined): CrlRow | undefined {
  const published = manifest.published[listKey(name)]
  if (row?.number === published) return row
  const found = row === undefined ? 'it is gone' : `it has number ${row.number}`
  const reason = published === undefined ? 'it was never published' : `number ${published} was published, ${found}`
  throw new DamagedRow(crlsTable.name, row?.id ?? listKey(name), reason)
}
