import type { TokenRow } from '../../../auth/token.ts'
import type { Tokens } from '../../../auth/tokens.ts'

/**
 * Tokens as sys/leases shows them: each that expires is a lease, under the path that made it and the id of its row,
 * which is not a credential.
 */
const folder = 'auth/'

export const isTokenLease = (leaseId: string): boolean => leaseId.startsWith(folder)

/** The living token of a lease id. */
export async function tokenOfLease(tokens: Tokens, leaseId: string): Promise<TokenRow | undefined> {
  const [path, id] = partsOf(leaseId)
  const row = await tokens.get(id)
  return row?.path === path && row.expiresAt !== null ? row : undefined
}

/** The path and the row id in a lease id. */
export function partsOf(leaseId: string): readonly [string, string] {
  const slash = leaseId.lastIndexOf('/')
  return [leaseId.slice(0, slash), leaseId.slice(slash + 1)]
}

/**
 * The keys directly below a prefix, in order: ids without the prefix, and folders with a slash at the end. Folders take
 * a walk through all tokens.
 * @param prefix '' or ending in a slash
 * @param after a key of an earlier answer: only those after it
 */
export async function listTokenLeases(tokens: Tokens, prefix: string, after: string, limit: number): Promise<string[]> {
  if (prefix === '') return after < folder && (await any(tokens)) ? [folder] : []
  const ids: string[] = []
  const folders = new Set<string>()
  for await (const page of tokens.ending('')) {
    for (const { path, id } of page) {
      const inside = `${path}/`
      if (!inside.startsWith(prefix)) continue
      const below = inside.slice(prefix.length)
      if (below !== '') folders.add(below.slice(0, below.indexOf('/') + 1))
      else if (id > after) ids.push(id)
    }
    if (folders.size === 0 && ids.length >= limit) break
  }
  return [...ids, ...[...folders].filter((name) => name > after)].sort().slice(0, limit)
}

async function any(tokens: Tokens): Promise<boolean> {
  for await (const page of tokens.ending('')) if (page.length > 0) return true
  return false
}
