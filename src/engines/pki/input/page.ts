import { Type } from 'typebox'
import { integer, text } from '../../../field.ts'

export const noFields = Type.Object({})

export const pageFields = Type.Object({
  after: text({ about: 'Entries beyond this one only.' }),
  limit: integer({ about: 'At most so many entries; absent or 0 is all.' }),
})

/** What a page shows of a list in its order. */
export function pageOf(
  ids: readonly string[],
  { after, limit }: { readonly after?: string | undefined; readonly limit?: number | undefined },
): string[] {
  const rest = after ? ids.filter((id) => id > after) : [...ids]
  return limit && limit > 0 ? rest.slice(0, limit) : rest
}
