import { badRequest } from '../../../errors.ts'
import { parseAddress, parseRange } from '../../../x509/extensions/address.ts'
import type { GeneralName } from '../../../x509/extensions/generalname.ts'
import { isMailbox } from '../../../x509/mailbox.ts'
import { isHostname } from '../roles/names/hostname.ts'
import { shorten } from '../roles/names/text.ts'

const ascii = /^[\x21-\x7e]+$/

/** A host name, or with a leading dot the hosts of a domain. */
const isDomain = (text: string): boolean => isHostname(hostOf(text))
const hostOf = (text: string): string => (text.startsWith('.') ? text.slice(1) : text)

/**
 * A base of name constraints (RFC 5280 section 4.2.1.10). A text of another form would be in the certificate, and match
 * no name: the constraint would look like one and not be it.
 * @param field of the request, for the refusal
 * @throws ApiError 400
 */
export function domainBase(field: string, kind: 'dns' | 'email' | 'uri', value: string): GeneralName {
  if (!ascii.test(value)) throw refusal(field, value, 'must be ASCII (an IDN as xn--…)')
  if (kind === 'email' && value.includes('@')) {
    if (!isMailbox(value))
      throw refusal(field, value, 'is not an e-mail address, a host name, or a domain as .example.com')
  } else if (!isDomain(value)) {
    throw refusal(field, value, 'is not a host name, or a domain as .example.com')
  } else if (kind === 'uri' && parseAddress(hostOf(value)) !== undefined) {
    throw refusal(field, value, 'is an IP address: constraints on URIs are host names, or domains as .example.com')
  }
  return { kind, value }
}

/** As domainBase, for the addresses of a network. @throws ApiError 400 */
export function networkBase(field: string, text: string): GeneralName {
  const value = parseRange(text)
  if (value === undefined) throw refusal(field, text, 'is not a network in CIDR notation')
  return { kind: 'ip', value }
}

const refusal = (field: string, value: string, problem: string) =>
  badRequest(`${field}: ${JSON.stringify(shorten(value))} ${problem}`)
