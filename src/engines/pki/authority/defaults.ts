import type { Changes } from '../../../store/table.ts'
import type { Authority } from './authority.ts'
import type { authoritiesTable, IssuerRow, KeyRow } from './tables.ts'

/** The issuers and keys that a request added. */
export interface Added {
  readonly issuers: readonly IssuerRow[]
  readonly keys: readonly KeyRow[]
}

/**
 * The defaults after issuers and keys were added: the first key and the first issuer with a key become the defaults,
 * and where the default follows the latest, so does a single new issuer with a key. Revoked issuers do not count.
 * @param warn is told when the default does not follow
 */
export function defaultsAfter(
  { settings, defaultIssuer, defaultKey }: Authority,
  { issuers, keys }: Added,
  warn: (text: string) => void,
): Changes<typeof authoritiesTable> {
  const [firstKey] = keys
  const able = issuers.filter(({ keyId, revokedAt }) => keyId !== '' && revokedAt === null)
  const [first, ...more] = able
  const ambiguous = more.length > 0
  if (settings.defaultFollowsLatest && ambiguous && defaultIssuer !== undefined) {
    warn(
      `Default issuer left unchanged: could not select new issuer automatically as multiple imported issuers had key material in Strongroom.`,
    )
  }
  const follows = defaultIssuer === undefined || (settings.defaultFollowsLatest && !ambiguous)
  return {
    ...(defaultKey === undefined && firstKey !== undefined ? { defaultKey: firstKey.id } : {}),
    ...(follows && first !== undefined ? { defaultIssuer: first.id } : {}),
  }
}
