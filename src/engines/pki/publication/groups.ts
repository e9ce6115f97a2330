import { type Authority, type Issuer, mayBeUsed } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'

/** Issuers of a mount that have the same name and key, and so the same list. */
export interface CrlGroup {
  readonly crlIssuer: string
  /** In the order of their ids. */
  readonly issuers: readonly [Issuer, ...Issuer[]]
  /** Signs their list. Without one the list stays as it is: it is frozen. */
  readonly signer: Issuer | undefined
}

const known = new WeakMap<Authority, ReadonlyMap<string, CrlGroup>>()

/** The groups of an authority, by CRL issuer. */
export function groupsOf(authority: Authority): ReadonlyMap<string, CrlGroup> {
  const found = known.get(authority)
  if (found !== undefined) return found
  const made = new Map<string, CrlGroup>()
  const byIssuer = Map.groupBy(authority.issuers.values(), ({ certificate }) => crlIssuerOf(certificate))
  for (const [crlIssuer, [first, ...others]] of byIssuer) {
    if (first === undefined) continue
    const issuers = [first, ...others] as const
    made.set(crlIssuer, { crlIssuer, issuers, signer: signerAmong(authority, issuers) })
  }
  known.set(authority, made)
  return made
}

/** The default issuer if it may sign lists, or else the first that may. */
function signerAmong(authority: Authority, issuers: readonly Issuer[]): Issuer | undefined {
  const able = issuers.filter((issuer) => mayBeUsed(issuer, 'crl-signing') && hasKey(authority, issuer))
  const { defaultIssuer } = authority
  return able.find((issuer) => issuer === defaultIssuer) ?? able[0]
}

export const notInMount = 'its issuer is not in this mount'

/** Why the list of a group is not signed here: it has no signer, or is not in the mount any more. */
export function whyUnsigned(authority: Authority, group: CrlGroup | undefined): string {
  if (group === undefined) return notInMount
  return group.issuers.some((issuer) => hasKey(authority, issuer))
    ? 'no issuer of this name and key has the usage crl-signing'
    : 'the key of its issuer is not here'
}

/** Whether its private key is here. */
export const hasKey = (authority: Authority, issuer: Issuer): boolean => authority.keyOf(issuer) !== undefined

/** The CRL issuers of these issuers, and of those that have these keys. @param ids of issuers and keys */
export function crlIssuersOf({ issuers }: Authority, ids: Iterable<string>): ReadonlySet<string> {
  const named = new Set(ids)
  const found = [...issuers.values()].filter(({ row }) => named.has(row.id) || named.has(row.keyId))
  return new Set(found.map(({ certificate }) => crlIssuerOf(certificate)))
}
