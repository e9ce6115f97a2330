import type { Role } from '../role.ts'
import { type Domains, foldCase } from './domains.ts'
import { isHostname, isWildcardLabel } from './hostname.ts'
import { isPlainText, shorten } from './text.ts'

/** The refusal of a name: the rule as a sentence, and the nearest setting that would allow it. */
export interface Objection {
  readonly rule: string
  readonly setting?: string
}

/** The parts of a name. `reduced` is the host to which rules apply: after the @, or after the wildcard label. */
interface Parts {
  readonly name: string
  readonly email: boolean
  readonly host: string
  readonly wildcard: string | undefined
  readonly reduced: string
}

/**
 * Checks whether a role allows a name: a common name, a DNS name or an e-mail address.
 * @param domains the allowed ones of the role, templates resolved
 * @returns undefined when it is allowed
 */
export function objectionTo(name: string, role: Role, domains: Domains): Objection | undefined {
  if (!isPlainText(name)) return { rule: 'a name must not contain control characters' }
  const parts = takeApart(name)
  if ('rule' in parts) return parts
  if (parts.wildcard !== undefined && !role.allowWildcardCertificates) {
    return { rule: `${shorten(name)} is a wildcard`, setting: 'allow_wildcard_certificates=true' }
  }
  if (role.enforceHostnames && !wellFormed(parts)) {
    return { rule: `${shorten(name)} is not a host name`, setting: 'enforce_hostnames=false' }
  }
  if (role.allowAnyName || isLocal(parts, role) || isInDomain(parts, role, domains)) return undefined
  return nearest(parts, role, domains)
}

/** @returns the objection to a name that no role could allow */
function takeApart(name: string): Parts | Objection {
  const [local = '', host = '', ...more] = name.includes('@') ? name.split('@') : ['', name]
  const email = name.includes('@')
  if (more.length > 0) return { rule: `${shorten(name)} has more than one @` }
  if (!name.includes('*')) return { name, email, host, wildcard: undefined, reduced: host }
  if (email) return { rule: `${shorten(`${local}@${host}`)} is an e-mail address with a wildcard` }
  const dot = name.indexOf('.')
  const [wildcard, reduced] = dot < 0 ? [name, ''] : [name.slice(0, dot), name.slice(dot + 1)]
  if (name.indexOf('*') !== name.lastIndexOf('*') || !wildcard.includes('*')) {
    return { rule: `a name may have only one wildcard, in its leftmost label: ${shorten(name)}` }
  }
  return { name, email, host, wildcard, reduced }
}

const wellFormed = ({ wildcard, reduced }: Parts): boolean =>
  wildcard === undefined ? isHostname(reduced) : isWildcardLabel(wildcard) && (reduced === '' || isHostname(reduced))

const localNames = ['localhost', 'localdomain']

const isLocal = ({ reduced }: Parts, { allowLocalhost, allowSubdomains }: Role): boolean =>
  allowLocalhost &&
  (localNames.includes(reduced) || (allowSubdomains && localNames.some((local) => reduced.endsWith(`.${local}`))))

function isInDomain(parts: Parts, role: Role, domains: Domains): boolean {
  return (
    (role.allowBareDomains && isBare(parts, domains)) ||
    (role.allowSubdomains && isBelow(parts, domains)) ||
    (role.allowGlobDomains && domains.match(parts.name))
  )
}

/** An allowed domain may be a whole e-mail address, too. */
const isBare = ({ name, email, host }: Parts, domains: Domains): boolean =>
  domains.holds(name) || (email && domains.holds(host))

const isBelow = ({ wildcard, reduced }: Parts, domains: Domains): boolean =>
  domains.holdAbove(reduced) || (wildcard !== undefined && domains.holds(reduced))

/** The objection to a name that no rule allows, naming the nearest rule. */
function nearest(parts: Parts, role: Role, domains: Domains): Objection {
  const name = shorten(parts.name)
  const folded = { ...parts, reduced: foldCase(parts.reduced) }
  if (isBare(parts, domains)) return { rule: `${name} is an allowed domain itself`, setting: 'allow_bare_domains=true' }
  if (isBelow(parts, domains)) {
    return { rule: `${name} is a subdomain of an allowed domain`, setting: 'allow_subdomains=true' }
  }
  if (domains.match(parts.name)) {
    return { rule: `${name} matches a glob of allowed_domains`, setting: 'allow_glob_domains=true' }
  }
  if (isLocal(parts, { ...role, allowLocalhost: true })) {
    return { rule: `${name} is a local name`, setting: 'allow_localhost=true' }
  }
  if (isLocal(parts, { ...role, allowLocalhost: true, allowSubdomains: true })) {
    return { rule: `${name} is below a local name`, setting: 'allow_localhost=true with allow_subdomains=true' }
  }
  if (isBelow(folded, domains)) {
    return { rule: `${name} is a subdomain of an allowed domain in another case`, setting: 'allowed_domains' }
  }
  return { rule: `${name} is not in an allowed domain`, setting: 'allowed_domains' }
}
