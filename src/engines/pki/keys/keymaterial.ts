import { badRequest } from '../../../errors.ts'
import type { Material } from '../../../keys/material.ts'
import { NoMaterial } from '../../../keys/materials/materials.ts'
import type { MaybePromise } from '../../../route.ts'
import type { Database } from '../../../store/database.ts'
import { type KeyRow, keysTable } from '../authority/tables.ts'

interface Sources {
  readonly database: Database
  fetch(id: string): MaybePromise<Material>
}

/**
 * Finds the material of a key. It throws ApiError 400 for a key that was deleted since its row was read: the row and
 * the material are deleted together.
 */
export const materialFinder =
  ({ database, fetch }: Sources): ((key: KeyRow) => MaybePromise<Material>) =>
  (key) => {
    const found = fetch(key.material)
    if (!(found instanceof Promise)) return found
    return found.catch(async (error: unknown) => {
      if (!(error instanceof NoMaterial)) throw error
      const there = await database.read((q) => database.table(keysTable).get(q, key.id))
      throw there === undefined ? badRequest(`the key ${key.id} was deleted meanwhile`) : error
    })
  }
