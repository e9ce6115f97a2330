import type { Component } from '../kek/components.ts'
import { destroyKek, findKek, makeKek } from '../kek/kek.ts'
import { type KekPurpose, keksTable } from '../tables.ts'
import type { CustodyOptions } from './opening.ts'

/**
 * The ceremony on a node with a token of its own: custodians bring the components of the active KEKs into it. The rows are not
 * verified yet (the key that seals them is under one of these KEKs); their check values decide which components are right.
 * @returns how many KEKs were made; those that the token holds already are left alone
 * @throws Error when components do not make the KEK that the cluster uses; what this call made is destroyed again
 */
export async function adoptKeks(
  options: CustodyOptions,
  components: Readonly<Record<KekPurpose, readonly Component[]>>,
): Promise<number> {
  const { hsm, database, strict } = options
  const page = { by: 'id', limit: 100 } as const
  const rows = await database.read((q) => database.unverified(keksTable).list(q, { state: 'active' }, page))
  const made: Buffer[] = []
  try {
    for (const { id, ckaId, checkValue, purpose: name } of rows) {
      if ((await findKek(hsm, ckaId)) !== undefined) continue
      const purpose = name as KekPurpose
      made.push(ckaId)
      const kek = await makeKek(hsm, { id, ckaId, purpose }, { strict, components: components[purpose] })
      if (!kek.checkValue.equals(checkValue)) {
        throw new Error(
          `these components do not make the ${purpose} KEK: its check value is ${checkValue.toString('hex')}`,
        )
      }
    }
    return made.length
  } catch (error) {
    for (const ckaId of made) await destroyKek(hsm, ckaId)
    throw error
  }
}
