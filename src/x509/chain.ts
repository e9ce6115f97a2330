import type { Certificate } from './certificate.ts'
import { Malformed } from './malformed.ts'
import { signatureAlgorithmOf, verifySignature } from './signature.ts'

/** Chains over a set of CA certificates that may have signed one another in any way. */

/** A CA certificate of the set. */
export interface Authority {
  readonly id: string
  readonly certificate: Certificate
  /** Ids used as they stand instead of a built chain. */
  readonly manualChain?: readonly string[] | undefined
}

/** Whether the key of `parent` made the signature of `child`; the result for two certificates never changes. */
export type Verification = (child: Certificate, parent: Certificate) => boolean

/** The names must match and the signature must verify; a signature over SHA-1 never counts. */
export const isSignedBy: Verification = (child, parent) =>
  child.issuer.equals(parent.subject) &&
  signatureAlgorithmOf(child.algorithm)?.weak === false &&
  verifies(child, parent)

/** Whether a certificate is a root: signed by itself. A weak signature is enough, because no trust rests on it. */
export const isSelfSigned = (certificate: Certificate): boolean =>
  certificate.isSelfIssued && verifies(certificate, certificate)

/** Whether the key of `parent` made the signature, which may be weak. */
export function verifies({ algorithm, tbs, signature }: Certificate, parent: Certificate): boolean {
  try {
    return verifySignature({ publicKey: parent.publicKey(), algorithm, data: tbs, signature })
  } catch (error) {
    if (error instanceof Malformed) return false
    throw error
  }
}

/**
 * Keys of the issuer's name that are tried although the child identifies another: without a bound, thousands of
 * certificates without parents and as many keys of that name would cost their product in verifications.
 */
const mostUnlikely = 64

/** The parents of every certificate of a set, by id. */
type Parents = ReadonlyMap<string, Twins>

/**
 * Finds the parents of every certificate: those of its issuer's name whose key made its signature (RFC 5280 section
 * 6.1.3). Key identifiers are no condition; keys that the child identifies are tried first, and the search ends with
 * the key that signed.
 * @yields after each verification, so that a caller can pause
 */
export function* searchParents(
  authorities: readonly Authority[],
  verified: Verification = isSignedBy,
): Generator<undefined, Parents> {
  const twins = new Map(
    [...Map.groupBy(authorities, ({ certificate }) => text(certificate.subject))].map(([subject, named]) => [
      subject,
      [...Map.groupBy(named, ({ certificate }) => text(certificate.spki)).values()],
    ]),
  )
  const parents = new Map<string, Twins>()
  for (const { id, certificate: child } of authorities) {
    const named = twins.get(text(child.issuer)) ?? []
    const isLikely = ({ certificate }: Authority) => identifies(child, certificate)
    for (const candidates of likelyFirst(named, isLikely, mostUnlikely)) {
      const [first] = candidates
      const isParent = first !== undefined && verified(child, first.certificate)
      yield
      if (!isParent) continue
      parents.set(id, candidates)
      break
    }
  }
  return parents
}

/** Certificates with the same subject and key: they are parents of the same certificates. */
type Twins = readonly Authority[]

/** Groups with a likely member, then the others. @param most of the others */
export function* likelyFirst<T>(
  groups: readonly (readonly T[])[],
  isLikely: (one: T) => boolean,
  most = Number.POSITIVE_INFINITY,
): Generator<readonly T[], void> {
  const unlikely: (readonly T[])[] = []
  for (const group of groups) {
    if (group.some(isLikely)) yield group
    else unlikely.push(group)
  }
  yield* unlikely.slice(0, most)
}

/** Whether the key identifier of a parent is the one that its child names, or either has none. */
export function identifies({ authorityKeyId: wanted }: Certificate, { subjectKeyId: has }: Certificate): boolean {
  return wanted === undefined || has === undefined || wanted.equals(has)
}

/**
 * The chain of a certificate as ids: itself, then its parents' chains, those of self-issued parents first, each id
 * once. A chain ends where parents are missing. The order depends only on the set.
 * @param parents as searchParents found them
 * @returns a function from an id of the set to its chain, built on demand: with many twins each chain is as long as the
 *   set
 */
export function chainFinder(authorities: readonly Authority[], parents: Parents): (id: string) => readonly string[] {
  const byId = new Map(authorities.map((authority) => [authority.id, authority]))
  return (id) => {
    const authority = byId.get(id)
    if (authority === undefined) return []
    return authority.manualChain?.filter((other) => byId.has(other)) ?? collect(authority, byId, parents)
  }
}

const text = (der: Buffer): string => der.toString('latin1')

/** Depth first. Each set of twins is entered once, so that a chain costs no more than the size of the set. */
function collect(start: Authority, byId: ReadonlyMap<string, Authority>, parents: Parents): readonly string[] {
  const chain = new Set<string>()
  const entered = new Set<Twins>()
  const waiting = [start]
  const expanded = new Set<string>()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (expanded.has(next.id)) continue
    expanded.add(next.id)
    chain.add(next.id)
    for (const id of next.manualChain ?? []) if (byId.has(id)) chain.add(id)
    if (next.manualChain !== undefined) continue
    const twins = parents.get(next.id)
    if (twins === undefined || entered.has(twins)) continue
    entered.add(twins)
    waiting.push(...twins.toSorted(lastFirst))
  }
  return [...chain]
}

/**
 * Sorts parents in the reverse of their order in the chain, because the last one waiting is taken next: self-issued
 * ones last, then by id.
 */
function lastFirst(a: Authority, b: Authority): number {
  if (a.certificate.isSelfIssued !== b.certificate.isSelfIssued) return a.certificate.isSelfIssued ? 1 : -1
  return a.id < b.id ? -1 : 1
}

/**
 * Whether an issuer may use a manual chain: it begins with the issuer, each certificate signed the one before, and a
 * root ends it.
 * @returns the reason when it may not, as a sentence
 */
export function verifyManualChain(issuer: Certificate, chain: readonly Certificate[]): string | undefined {
  const [first] = chain
  const last = chain.at(-1)
  if (first === undefined || last === undefined) return 'the chain is empty'
  if (!first.der.equals(issuer.der)) return 'the chain does not begin with the issuer itself'
  for (const [index, child] of chain.entries()) {
    const parent = chain[index + 1]
    if (parent && !isSignedBy(child, parent))
      return `certificate ${index + 2} of the chain did not sign the one before it`
  }
  return isSelfSigned(last) ? undefined : 'the chain does not end in a self-signed certificate'
}
