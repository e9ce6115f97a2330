import { isMailbox } from '../../../../x509/mailbox.ts'
import type { OtherName } from '../decision.ts'
import type { NameRequest } from '../request.ts'
import type { Role } from '../role.ts'
import { subjectTypes } from '../subject.ts'
import { isPrintable, isUnrestricted } from './commonname.ts'
import { dnsNameOf, toAscii } from './hostname.ts'
import { onlyUtf8, readOtherName } from './othername.ts'
import { isPlainText, shorten } from './text.ts'

/**
 * The requested names of a certificate, from the request and, if the role says so, from the CSR; nothing is decided
 * yet.
 */
export interface WantedNames {
  readonly commonName: string
  readonly serialNumbers: readonly string[]
  readonly userIds: readonly string[]
  readonly dns: readonly string[]
  readonly email: readonly string[]
  /** Texts given as DNS names that cannot be DNS names. */
  readonly malformed: readonly string[]
  /** Other names; a string is the reason why one cannot be read. */
  readonly other: readonly (OtherName | string)[]
  readonly warnings: readonly string[]
}

/**
 * Collects names as the reference does: a name with an @ is an e-mail address, and the common name is an alternative
 * name too.
 */
export function wantedNames(role: Role, request: NameRequest): WantedNames {
  const { csr } = request
  const warnings: string[] = []
  const ownName = csr !== undefined && role.useCsrCommonName ? csr.commonName : ''
  if (ownName !== '' && request.commonName !== '') warnings.push(ignored('common_name', 'use_csr_common_name'))
  const commonName = ownName || request.commonName
  const sansOfCsr = csr !== undefined && role.useCsrSans
  const { serials, names } = splitSerials(request.altNames)
  if (sansOfCsr) {
    const given = { alt_names: names, ip_sans: request.ipSans, uri_sans: request.uriSans }
    for (const [field, list] of Object.entries(given))
      if (list.length > 0) warnings.push(ignored(field, 'use_csr_sans'))
  }
  const read = sansOfCsr ? { dns: csr.dns, email: csr.email, malformed: none } : sorted(names, warnings)
  const asked = isUnrestricted(role) ? possible(read, sansOfCsr, warnings) : read
  const own = request.excludeCnFromSans || commonName === '' ? { dns: [], email: [] } : alternativeOf(commonName)
  const others = splitOthers(role, request)
  const serialNumbers = [request.serialNumber, ...serials, ...others.serials].filter((serial) => serial !== '')
  return {
    commonName,
    serialNumbers: serialNumbers.length > 0 ? serialNumbers : (csr?.serialNumbers ?? []),
    userIds: request.userIds.length > 0 ? request.userIds : (csr?.userIds ?? []),
    dns: [...new Set([...own.dns, ...asked.dns])],
    email: [...new Set([...own.email, ...asked.email])].sort(),
    malformed: asked.malformed,
    other: others.other,
    warnings,
  }
}

const ignored = (field: string, setting: string): string =>
  `the ${field} field was provided but the role is set with "${setting}" set to true`

/**
 * Entries of alt_names with the OID of serialNumber are not alternative names: they give the subject further serial
 * numbers.
 */
function splitSerials(entries: readonly string[]): { serials: readonly string[]; names: readonly string[] } {
  if (entries.length === 0) return { serials: none, names: none }
  const serials: string[] = []
  const names: string[] = []
  for (const entry of entries) {
    const serial = entry.startsWith(`${subjectTypes.serialNumber};`) ? readOtherName(entry) : undefined
    if (typeof serial === 'object') serials.push(serial.value)
    else names.push(entry)
  }
  return { serials, names }
}

const none: readonly string[] = []

interface Sorted {
  readonly dns: readonly string[]
  readonly email: readonly string[]
}

/** Alternative names that were asked for. `malformed` cannot be DNS names. */
interface Asked extends Sorted {
  readonly malformed: readonly string[]
}

function sorted(names: readonly string[], warnings: string[]): Asked {
  if (names.length === 0) return { dns: none, malformed: none, email: none }
  const dns: string[] = []
  const malformed: string[] = []
  const left: string[] = []
  for (const name of names.filter((entry) => !entry.includes('@'))) {
    const converted = dnsNameOf(name)
    if (converted !== undefined) dns.push(converted)
    else if (toAscii(name) === undefined) malformed.push(name)
    else left.push(name)
  }
  warnOfLeft('alt_names', 'host names', left, warnings)
  return { dns, malformed, email: names.filter((entry) => entry.includes('@')).map(emailOf) }
}

/**
 * The names that a certificate can have, of a role that refuses none: the others are left out with a warning. Only
 * names with control characters remain, to be refused.
 */
function possible({ dns, email, malformed }: Asked, ofCsr: boolean, warnings: string[]): Asked {
  const isLeft = (name: string, fits: (name: string) => boolean) => isPlainText(name) && !fits(name)
  const notHosts = [...malformed.filter(isPlainText), ...dns.filter((name) => isLeft(name, isPrintable))]
  const notMailboxes = email.filter((address) => isLeft(address, isMailbox))
  warnOfLeft(ofCsr ? 'DNS names of the CSR' : 'alt_names', 'host names', notHosts, warnings)
  warnOfLeft(ofCsr ? 'e-mail addresses of the CSR' : 'alt_names', 'mailboxes', notMailboxes, warnings)
  return {
    dns: dns.filter((name) => !isLeft(name, isPrintable)),
    email: email.filter((address) => !isLeft(address, isMailbox)),
    malformed: malformed.filter((name) => !isPlainText(name)),
  }
}

function warnOfLeft(which: string, what: string, left: readonly string[], warnings: string[]): void {
  if (left.length === 0) return
  warnings.push(`these ${which} are not ${what} and were left out: ${left.slice(0, 10).map(shorten).join(', ')}`)
}

/** The common name as alternative name; empty if it is neither an address nor a host name. */
function alternativeOf(commonName: string): Sorted {
  if (commonName.includes('@')) return { dns: [], email: [emailOf(commonName)].filter(isMailbox) }
  const dns = dnsNameOf(commonName)
  return { dns: dns === undefined ? [] : [dns], email: [] }
}

/** An e-mail address with its host in ASCII (RFC 5280, 7.5). */
function emailOf(address: string): string {
  const at = address.lastIndexOf('@')
  const host = toAscii(address.slice(at + 1))
  return host === undefined ? address : `${address.slice(0, at)}@${host}`
}

function splitOthers(
  role: Role,
  { otherSans, csr }: NameRequest,
): { readonly serials: readonly string[]; readonly other: readonly (OtherName | string)[] } {
  const fromCsr = csr !== undefined && role.useCsrSans ? csr.other : []
  if (otherSans.length === 0 && fromCsr.length === 0) return { serials: none, other: none }
  const asked = otherSans.map(readOtherName)
  const isSerial = (other: OtherName | string) => typeof other === 'object' && other.oid === subjectTypes.serialNumber
  return {
    serials: asked.flatMap((other) => (isSerial(other) && typeof other === 'object' ? [other.value] : [])),
    other: [
      ...asked.filter((other) => !isSerial(other)),
      ...fromCsr.map(({ oid, value }) => (value === undefined ? `${onlyUtf8} ${JSON.stringify(oid)}` : { oid, value })),
    ],
  }
}
