import { showMoment } from '../../../clock/moment.ts'
import { formatAddress } from '../../../x509/extensions/address.ts'
import type { Circumstances } from './decision.ts'
import { refusalOfKey, refusalToMakeKey } from './keys.ts'
import { plainAddress, readAddress } from './names/address.ts'
import { refusalOfCommonName, refusalOfDnsName, refusalOfEmail, refusalOfMalformed } from './names/commonname.ts'
import { domainsOf } from './names/domains.ts'
import { refusalOfSerialNumber, refusalOfUserId } from './names/identifiers.ts'
import { networkRule, type Origin, refusalOfAddress } from './names/ip.ts'
import { readAllowedOthers, refusalOfOtherName, showOtherName } from './names/othername.ts'
import { refusalOfUri } from './names/uri.ts'
import { type WantedNames, wantedNames } from './names/wanted.ts'
import type { Check, Refusal } from './refusal.ts'
import type { NameRequest } from './request.ts'
import type { Role } from './role.ts'
import { type Identity, resolve } from './template.ts'
import { type Validity, validityOf } from './validity.ts'

/** All requested contents of a certificate, read but not yet allowed. */
export interface Asked {
  readonly request: NameRequest
  readonly names: WantedNames
  readonly addresses: readonly Address[]
  readonly uris: readonly string[]
  /** The source of addresses and URIs. */
  readonly origin: Origin
  readonly validity: Validity | Refusal
}

interface Address {
  readonly text: string
  /** 4 or 16 bytes; undefined when the text is not an address. */
  readonly bytes: Buffer | undefined
}

/** Reads a request for a role: names come from the CSR if the role says so. */
export function readAsked(role: Role, request: NameRequest, circumstances: Circumstances): Asked {
  const csr = role.useCsrSans ? request.csr : undefined
  const fromCsr = csr?.ip.map(plainAddress).map((bytes) => ({ text: formatAddress(bytes), bytes }))
  return {
    request,
    names: wantedNames(role, request),
    addresses: fromCsr ?? request.ipSans.map((text) => ({ text, bytes: readAddress(text) })),
    uris: csr?.uri ?? request.uriSans,
    origin: csr === undefined ? 'the API' : 'CSR',
    validity: validityOf(role, request, circumstances),
  }
}

const check = (subject: string, value: string, refusal: Refusal | undefined): Check => ({ subject, value, refusal })

/**
 * The check of every value but the validity, in the order in which refusals are reported: among names, the common name
 * comes first.
 */
export function* checksOf(role: Role, asked: Asked, { identity }: Circumstances): Generator<Check> {
  const { csr } = asked.request
  yield csr
    ? check('key', `${csr.key.type} ${csr.key.bits}`, refusalOfKey(role, csr.key))
    : check('key', role.keyType, refusalToMakeKey(role))
  yield* checksOfHosts(role, asked.names, identity)
  yield* checksOfOthers(role, asked, identity)
}

/** The last of the checks. */
export const checkOfValidity = ({ validity, request }: Asked): Check =>
  'rule' in validity
    ? check('validity', request.notAfter, validity)
    : check('validity', showMoment(validity.notAfter), undefined)

function* checksOfHosts(role: Role, names: WantedNames, identity: Identity): Generator<Check> {
  const domains = domainsOf(role.allowedDomainsTemplate ? resolve(role.allowedDomains, identity) : role.allowedDomains)
  yield check('common_name', names.commonName, refusalOfCommonName(names.commonName, role, domains))
  for (const serial of names.serialNumbers) {
    yield check('serial_number', serial, refusalOfSerialNumber(serial, role.allowedSerialNumbers))
  }
  for (const name of names.malformed) yield check('dns_san', name, refusalOfMalformed(name))
  for (const name of names.dns) yield check('dns_san', name, refusalOfDnsName(name, role, domains))
  for (const name of names.email) yield check('email_san', name, refusalOfEmail(name, role, domains))
}

function* checksOfOthers(role: Role, asked: Asked, identity: Identity): Generator<Check> {
  const { names, origin } = asked
  const isAllowed = networkRule(role)
  for (const { text, bytes } of asked.addresses) {
    yield check('ip_san', text, refusalOfAddress(text, bytes, isAllowed, origin))
  }
  const uris = role.allowedUriSansTemplate ? resolve(role.allowedUriSans, identity) : role.allowedUriSans
  for (const uri of asked.uris) yield check('uri_san', uri, refusalOfUri(uri, uris, origin))
  if (names.other.length > 0) {
    const others = readAllowedOthers(role.allowedOtherSans)
    for (const other of names.other) {
      yield check('other_san', showOtherName(other), refusalOfOtherName(other, others))
    }
  }
  for (const userId of names.userIds) yield check('user_id', userId, refusalOfUserId(userId, role.allowedUserIds))
}
