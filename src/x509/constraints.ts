import type { Certificate } from './certificate.ts'
import { identifies, likelyFirst, verifies } from './chain.ts'
import type { GeneralName, GeneralNameKind } from './extensions/generalname.ts'
import { attributeTypes, commonNameOf, emptyName, valuesOf } from './name.ts'
import { withColons } from './serial.ts'
import { describeName, isWithin, type Purpose } from './subtree.ts'

/**
 * The limits that the CA certificates above a new certificate set for it (RFC 5280 sections 4.2.1.9, 4.2.1.10 and 6.1).
 */

/** The fields of a certificate that constraints apply to. */
export interface Constrained {
  /** Name, DER. */
  readonly subject: Buffer
  readonly subjectAltName: readonly GeneralName[]
  readonly isCa: boolean
}

interface Step {
  readonly certificate: Certificate
  /** The number of CA certificates below it that are not self-issued. */
  readonly depth: number
}

/**
 * Whether a certificate of this issuer would satisfy the constraints of at least one path through the chain.
 * @param chain the issuer, then the known CA certificates above it, in any order and with any number of paths
 * @param at milliseconds since 1970, when every certificate of the path must be valid; undefined skips this check
 * @returns the reason when it may not be issued, as a sentence
 */
export function refusalOf(leaf: Constrained, chain: readonly Certificate[], at?: number): string | undefined {
  const [issuer] = chain
  if (issuer === undefined) return undefined
  const names = chain.some(({ nameConstraints }) => nameConstraints !== undefined) ? namesOf(leaf) : []
  let refusal: string | undefined
  const seen = new Set<Certificate>()
  const steps: Step[] = [{ certificate: issuer, depth: leaf.isCa && !leaf.subject.equals(issuer.subject) ? 1 : 0 }]
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
    const { certificate, depth } = step
    if (seen.has(certificate)) continue
    seen.add(certificate)
    const reason = refusalBy(step, names, at)
    refusal ??= reason
    if (reason !== undefined) continue
    const parents = parentsOf(certificate, chain)
    if (parents.length === 0) return undefined
    // Self-issued certificates do not count towards the depth: walking them first finds the least depth of each.
    if (certificate.isSelfIssued) steps.unshift(...parents.map((parent) => ({ certificate: parent, depth })))
    else steps.push(...parents.map((parent) => ({ certificate: parent, depth: depth + 1 })))
  }
  return refusal
}

/**
 * The certificates of the chain that have the name of the issuer and the key that signed; nothing is above a root. Key
 * identifiers only tell which key to try first: a path is valid whatever they are (RFC 5280 section 6.1.3).
 */
function findParents(child: Certificate, chain: readonly Certificate[]): readonly Certificate[] {
  const named = chain.filter(({ subject }) => subject.equals(child.issuer))
  const byKey = [...Map.groupBy(named, ({ spki }) => spki.toString('latin1')).values()]
  for (const twins of likelyFirst(byKey, (parent) => identifies(child, parent))) {
    const [first] = twins
    if (first !== undefined && verifies(child, first)) return twins.includes(child) ? [] : twins
  }
  return []
}

const parentsByChain = new WeakMap<readonly Certificate[], Map<Certificate, readonly Certificate[]>>()

/** Found once for each chain: issuing asks for them with every new certificate. */
function parentsOf(child: Certificate, chain: readonly Certificate[]): readonly Certificate[] {
  const found = parentsByChain.get(chain) ?? new Map<Certificate, readonly Certificate[]>()
  parentsByChain.set(chain, found)
  const known = found.get(child) ?? findParents(child, chain)
  found.set(child, known)
  return known
}

function refusalBy({ certificate, depth }: Step, names: readonly GeneralName[], at: number | undefined) {
  const refusal =
    refusalOfAuthority(certificate) ??
    (at === undefined ? undefined : refusalOfTime(certificate, at)) ??
    refusalOfDepth(certificate, depth) ??
    refusalOfNames(certificate, names)
  return refusal && `${refusal} (CA certificate ${describe(certificate)})`
}

const describe = ({ subject, serial }: Certificate): string => commonNameOf(subject) ?? withColons(serial)

function refusalOfAuthority({ isCa, keyUsage }: Certificate): string | undefined {
  if (!isCa) return 'the signing certificate is not a CA certificate'
  return keyUsage?.includes('CertSign') === false ? 'its key usage does not allow signing certificates' : undefined
}

function refusalOfTime({ notBefore, notAfter }: Certificate, at: number): string | undefined {
  if (at < notBefore) return `the signing certificate is not valid before ${new Date(notBefore).toISOString()}`
  return at > notAfter ? `the signing certificate expired at ${new Date(notAfter).toISOString()}` : undefined
}

function refusalOfDepth({ basicConstraints }: Certificate, depth: number): string | undefined {
  const length = basicConstraints?.pathLength
  if (length === undefined || depth <= length) return undefined
  return `its path length of ${length} allows no further CA certificate below`
}

function refusalOfNames({ nameConstraints }: Certificate, names: readonly GeneralName[]): string | undefined {
  if (nameConstraints === undefined) return undefined
  const { permitted, excluded } = nameConstraints
  for (const name of names) {
    const allowed = permitted.filter(({ kind }) => kind === name.kind)
    const denied = excluded.filter(({ kind }) => kind === name.kind)
    const described = `the ${kinds[name.kind]} ${describeName(name)}`
    const matches = (purpose: Purpose) => (base: GeneralName) => isWithin(name, base, purpose)
    if ([...allowed, ...denied].some((base) => isWithin(name, base, 'excluded') === undefined)) {
      return `${described} cannot be compared with the name constraints`
    }
    const culprit = denied.find(matches('excluded'))
    if (culprit) return `${described} is excluded by the name constraint ${describeName(culprit)}`
    if (allowed.length > 0 && !allowed.some(matches('permitted'))) {
      return `${described} is outside the permitted name constraints ${allowed.map(describeName).join(', ')}`
    }
  }
  return undefined
}

const kinds: Readonly<Record<GeneralNameKind, string>> = {
  dns: 'DNS name',
  email: 'email address',
  uri: 'URI',
  ip: 'IP address',
  directory: 'subject',
  other: 'other name',
  registered: 'registered ID',
  unsupported: 'name of another kind',
}

const hostName = /^(?=.*\.)[a-z0-9_*-]+(?:\.[a-z0-9_-]+)*\.?$/i
/** SmtpUTF8Mailbox (RFC 9598 section 3). */
const internationalMailbox = '1.3.6.1.5.5.7.8.9'

/**
 * Every name that constraints apply to: the alternative names, of which international mailboxes are e-mail addresses
 * too (RFC 9598 section 6), the subject, its e-mail addresses, and, as in OpenSSL, its common name where that is a host
 * name and there is no DNS alternative name.
 */
function namesOf({ subject, subjectAltName }: Constrained): readonly GeneralName[] {
  const email = valuesOf(subject, attributeTypes.emailAddress)
  const common = subjectAltName.some(({ kind }) => kind === 'dns') ? [] : valuesOf(subject, attributeTypes.commonName)
  return [
    ...subjectAltName,
    ...subjectAltName.flatMap(asMailbox),
    ...(subject.equals(emptyName) ? [] : [{ kind: 'directory', value: subject } as const]),
    ...email.map((value) => ({ kind: 'email', value }) as const),
    ...common.filter((value) => hostName.test(value)).map((value) => ({ kind: 'dns', value }) as const),
  ]
}

/** One that is no text cannot be compared with a constraint: an empty address stands for it. */
const asMailbox = (name: GeneralName): readonly GeneralName[] =>
  name.kind === 'other' && name.oid === internationalMailbox
    ? [{ kind: 'email', value: typeof name.value === 'string' ? name.value : '' }]
    : []
