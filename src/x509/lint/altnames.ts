import type { GeneralName } from '../extensions/generalname.ts'
import { hasPlainHost, isMailbox } from '../mailbox.ts'
import { isUri } from '../uri.ts'
import { error, type Finding, warning } from './finding.ts'

/** Alternative names (RFC 5280 section 4.2.1.6). Deviations that roles may allow on purpose are warnings. */

const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const preferred = new RegExp(`^(?:\\*\\.)?${label}(?:\\.${label})*$`)
const longestHostName = 253
const control = /\p{Cc}/u

const shown = (name: string): string => JSON.stringify(name.slice(0, 80))

/** The faults of alternative names, each name by itself, and names that come twice. */
export function lintAltNames(names: readonly GeneralName[]): readonly Finding[] {
  const findings = names.flatMap(lintAltName)
  const texts = names.map((name) => (name.kind === 'dns' ? `dns:${name.value.toLowerCase()}` : ''))
  const hosts = texts.filter((text) => text !== '')
  if (new Set(hosts).size < hosts.length)
    findings.push(warning('san_duplicate', 'subjectAltName: a DNS name comes twice'))
  return findings
}

function lintAltName(name: GeneralName): readonly Finding[] {
  switch (name.kind) {
    case 'dns':
      return lintHost(name.value)
    case 'email':
      return lintMailbox(name.value)
    case 'uri':
      return lintUri(name.value)
    default:
      return []
  }
}

function lintMailbox(address: string): readonly Finding[] {
  if (!isMailbox(address)) return [error('san_email', 'subjectAltName: an rfc822Name is not a mailbox')]
  if (hasPlainHost(address)) return []
  return [warning('san_email_host', `subjectAltName: the host of ${shown(address)} is not a host name`)]
}

function lintUri(text: string): readonly Finding[] {
  if (isUri(text)) return []
  return [error('san_uri', `subjectAltName: ${shown(text)} is not a valid URI`)]
}

function lintHost(host: string): readonly Finding[] {
  if (host.trim() === '') return [error('san_dns_empty', 'subjectAltName: a dNSName is empty')]
  if (control.test(host)) return [error('san_dns_control', `subjectAltName: ${shown(host)} has a control character`)]
  if (preferred.test(host) && host.length <= longestHostName) return []
  return [warning('san_dns_syntax', `subjectAltName: ${shown(host)} is not in preferred name syntax`)]
}
