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

function verifies({ algorithm, tbs, signature }: Certificate, parent: Certificate): boolean {
  try {
    return verifySignature({ publicKey: parent.publicKey(), algorithm, data: tbs, signature })
  } catch (error) {
    if (error instanceof Malformed) return false
    throw error
  }
}

/**
 * The chain of a certificate as ids: itself, then its parents' chains, those of self-issued parents first, each id
 * once. A chain ends where parents are missing. The order depends only on the set.
 * @param verified called before this returns, for each certificate and each possible key of its issuer; it may remember
 *   its results
 * @returns a function from an id of the set to its chain, built on demand: with many twins each chain is as long as the
 *   set
 */
export function chainFinder(
  authorities: readonly Authority[],
  verified: Verification = isSignedBy,
): (id: string) => readonly string[] {
  const byId = new Map(authorities.map((authority) => [authority.id, authority]))
  const parents = new Map(
    findCandidates(authorities).map(({ child: { id, certificate }, twins }) => [
      id,
      twins.filter(([first]) => first !== undefined && verified(certificate, first.certificate)),
    ]),
  )
  return (id) => {
    const authority = byId.get(id)
    if (authority === undefined) return []
    return authority.manualChain?.filter((other) => byId.has(other)) ?? collect(authority, parents)
  }
}

/** Certificates with the same subject and key: they are parents of the same certificates. */
type Twins = readonly Authority[]

interface Candidates {
  readonly child: Authority
  readonly twins: readonly Twins[]
}

function findCandidates(authorities: readonly Authority[]): readonly Candidates[] {
  const bySubject = Map.groupBy(authorities, ({ certificate }) => text(certificate.subject))
  const twins = new Map(
    [...bySubject].map(([subject, named]) => [
      subject,
      [...Map.groupBy(named, ({ certificate }) => text(certificate.spki)).values()],
    ]),
  )
  return authorities.map((child) => ({
    child,
    twins: (twins.get(text(child.certificate.issuer)) ?? []).filter((parents) =>
      parents.some(({ certificate }) => identifies(child.certificate, certificate)),
    ),
  }))
}

/**
 * Compares key identifiers, as OpenSSL does: otherwise a certificate would be verified with every key of its issuer's
 * name.
 */
function identifies({ authorityKeyId: wanted }: Certificate, { subjectKeyId: has }: Certificate): boolean {
  return wanted === undefined || has === undefined || wanted.equals(has)
}

/** The pairs of child and parent that a chainFinder will verify: a caller can verify them beforehand, with pauses. */
export const candidatesOf = (authorities: readonly Authority[]): readonly (readonly [Certificate, Certificate])[] =>
  findCandidates(authorities).flatMap(({ child, twins }) =>
    twins.flatMap(([first]) => (first === undefined ? [] : [[child.certificate, first.certificate] as const])),
  )

const text = (der: Buffer): string => der.toString('latin1')

/** Depth first. Each set of twins is entered once, so that a chain costs no more than the size of the set. */
function collect(start: Authority, parents: ReadonlyMap<string, readonly Twins[]>): readonly string[] {
  const chain = new Set<string>()
  const entered = new Set<Twins>()
  const waiting = [start]
  const expanded = new Set<string>()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (expanded.has(next.id)) continue
    expanded.add(next.id)
    chain.add(next.id)
    for (const id of next.manualChain ?? []) if (parents.has(id)) chain.add(id)
    if (next.manualChain !== undefined) continue
    const fresh = (parents.get(next.id) ?? []).filter((twins) => !entered.has(twins))
    for (const twins of fresh) entered.add(twins)
    waiting.push(...fresh.flat().sort(lastFirst))
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
