import { Type } from 'typebox'
import { integer, text } from '../../../field.ts'

export const noFields = Type.Object({})

export const pageFields = Type.Object({
  after: text({ about: 'Only entries after this one.' }),
  limit: integer({ about: 'The most entries to return; absent or 0 means all.' }),
})

/** The page of an ordered list. */
export function pageOf(
  ids: readonly string[],
  { after, limit }: { readonly after?: string | undefined; readonly limit?: number | undefined },
): string[] {
  const rest = after ? ids.filter((id) => id > after) : [...ids]
  return limit && limit > 0 ? rest.slice(0, limit) : rest
}
