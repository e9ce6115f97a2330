import { nextTurn } from '../../after.ts'
import { badRequest, unavailable } from '../../errors.ts'
import type { Hsm } from '../../hsm/hsm.ts'
import type { Database } from '../../store/database.ts'
import type { Transaction } from '../../store/reader.ts'
import { type Rewrapped, rewrap } from '../cluster/rewrapping.ts'
import type { Keks } from '../kek/keks.ts'
import { blobTemplate } from '../live/blobs.ts'
import { Material } from '../material.ts'
import { type MaterialRow, materialsTable, type Part, type Residence } from '../tables.ts'

/** A material under the export KEK, not stored yet. */
export interface Release {
  readonly id: string
  readonly rev: number
  readonly changes: Rewrapped & { readonly exportable: true }
}

/** Makes keys exportable: that is a property of the blob, which is rewrapped inside the token under another KEK. */
export class MakeExportable {
  readonly #options: { hsm: Hsm; database: Database; keks: Keks; strict: boolean }

  constructor(options: { hsm: Hsm; database: Database; keks: Keks; strict: boolean }) {
    this.#options = options
  }

  /**
   * The token's part, before the transaction; rows that are exportable already are left out.
   * @throws ApiError 400 in strict mode, where this is decided when a key is created, and for keys that stay in the
   * token
   */
  async prepare(rows: readonly MaterialRow[]): Promise<Release[]> {
    const { hsm, keks, strict } = this.#options
    const releases: Release[] = []
    for (const row of rows) {
      // Derivation uses a part that never leaves: it is made again wherever the root goes.
      if (row.exportable || row.part === ('prk' satisfies Part) || row.residence === ('public' satisfies Residence))
        continue
      if (row.part === ('authority' satisfies Part)) throw badRequest('the key of an authority never leaves')
      if (strict) throw badRequest('strict mode: whether a key may be exported is decided when it is created')
      if (row.blob === null || row.kek === null) throw badRequest('what stays in the HSM cannot be exported')
      await nextTurn()
      const [from, to] = [await keks.get(row.kek), await keks.active('export')]
      const changes = await rewrap(hsm, from, to, row.blob, blobTemplate(new Material(row)))
      releases.push({ id: row.id, rev: row.rev, changes: { ...changes, exportable: true } })
    }
    return releases
  }

  /**
   * @throws ApiError 503 when a material changed meanwhile, or the KEK it would be under was destroyed: prepare again
   */
  async apply(tx: Transaction, releases: readonly Release[]): Promise<void> {
    const { database, keks } = this.#options
    const materials = database.table(materialsTable)
    for (const { id, rev, changes } of releases) {
      if (!(await keks.mayStore(tx, changes.kek))) throw unavailable('the key was rewrapped under a KEK that is gone')
      const row = await materials.get(tx, id)
      if (row?.rev !== rev) throw unavailable('the key changed while it was made exportable')
      await materials.update(tx, row, changes)
      tx.touch(materialsTable.name, id)
    }
  }
}
