import { contains, formatAddress, formatRange, parseAddress } from './extensions/address.ts'
import type { GeneralName } from './extensions/generalname.ts'
import { readName } from './name.ts'

/** Whether names lie within the subtrees of name constraints (RFC 5280 section 4.2.1.10). */

/**
 * The purpose of a comparison: a permitted subtree must cover everything a name stands for; an excluded one matches if
 * it covers any of it.
 */
export type Purpose = 'permitted' | 'excluded'

/** @returns undefined when the name cannot be compared; then a constraint of its kind refuses it */
export function isWithin(name: GeneralName, base: GeneralName, purpose: Purpose): boolean | undefined {
  switch (name.kind) {
    case 'dns':
      return base.kind === 'dns' && dnsWithin(host(name.value), host(base.value), purpose)
    case 'email':
      return base.kind === 'email' ? emailWithin(name.value, base.value) : false
    case 'uri':
      return base.kind === 'uri' ? uriWithin(name.value, base.value) : false
    case 'ip':
      return base.kind === 'ip' && contains(base.value, name.value)
    case 'directory':
      return base.kind === 'directory' && directoryWithin(name.value, base.value)
    default:
      return undefined
  }
}

const host = (text: string): string => text.toLowerCase().replace(/\.$/, '')

/** A base with a leading dot does not cover the domain itself, as in OpenSSL and others. */
function dnsWithin(name: string, base: string, purpose: Purpose): boolean {
  if (base === '' || name === base || name.endsWith(base.startsWith('.') ? base : `.${base}`)) return true
  return purpose === 'excluded' && name.includes('*') && standsFor(name.split('.'), base)
}

/** Whether a name with wildcards stands for a host that lies within the base. A wildcard is any part of one label. */
function standsFor(labels: readonly string[], base: string): boolean {
  const below = base.startsWith('.')
  const wanted = (below ? base.slice(1) : base).split('.')
  const least = below ? wanted.length + 1 : wanted.length
  return labels.length >= least && wanted.every((label, index) => covers(labels.at(index - wanted.length) ?? '', label))
}

/** Whether a label is a host's label, each `*` in it standing for any characters. Several are tried from the left. */
function covers(pattern: string, label: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop()
  if (last === undefined) return pattern === label
  if (label.length < first.length + last.length || !label.startsWith(first) || !label.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = label.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= label.length - last.length
}

/** The base is a mailbox, a host, or with a leading dot all hosts of a domain. */
function emailWithin(name: string, base: string): boolean | undefined {
  const at = name.lastIndexOf('@')
  if (at < 1 || at === name.length - 1) return undefined
  const [local, domain] = [name.slice(0, at), host(name.slice(at + 1))]
  // An international mailbox has its host in ASCII (RFC 9598 section 3); another cannot be compared byte by byte.
  if (!/^\p{ASCII}*$/u.test(domain)) return undefined
  const baseAt = base.lastIndexOf('@')
  if (baseAt >= 0) return local === base.slice(0, baseAt) && domain === host(base.slice(baseAt + 1))
  return hostWithin(domain, base)
}

const authority = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#@:[\]]+)(?::\d*)?(?:[/?#]|$)/i

/** Only the host counts. Under a constraint it must be a name: RFC 5280 rejects any other URI. */
function uriWithin(name: string, base: string): boolean | undefined {
  const [, found = ''] = authority.exec(name) ?? []
  if (found === '' || parseAddress(found) !== undefined) return undefined
  return hostWithin(host(found), base)
}

function hostWithin(name: string, base: string): boolean {
  const domain = host(base)
  return domain === '' || (domain.startsWith('.') ? name.endsWith(domain) : name === domain)
}

/**
 * The base must be the beginning of the name, compared without regard to case, blanks and string type (RFC 5280 section
 * 7.1).
 */
function directoryWithin(name: Buffer, base: Buffer): boolean {
  const [rdns, start] = [foldedRdns(name), foldedRdns(base)]
  return start.length <= rdns.length && start.every((rdn, index) => rdn === rdns[index])
}

const foldedRdns = (name: Buffer): readonly string[] =>
  readName(name).map((rdn) =>
    rdn
      .map(({ type, value }) => `${type}=${JSON.stringify(fold(value))}`)
      .sort()
      .join('+'),
  )

const fold = (text: string): string => text.normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/g, ' ')

/** Describes a name or subtree for a sentence. */
export function describeName(name: GeneralName): string {
  switch (name.kind) {
    case 'ip':
      return name.value.length === 4 || name.value.length === 16 ? formatAddress(name.value) : formatRange(name.value)
    case 'directory':
      return describeDirectory(name.value)
    case 'other':
      return name.oid
    case 'unsupported':
      return 'a name of a kind that is not supported'
    default:
      return name.value
  }
}

const describeDirectory = (name: Buffer): string =>
  readName(name)
    .map((rdn) => rdn.map(({ type, value }) => `${type}=${value}`).join('+'))
    .join(', ')
