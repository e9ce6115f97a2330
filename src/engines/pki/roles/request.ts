import { type Static, Type } from 'typebox'
import { badRequest } from '../../../errors.ts'
import { boolean, commaList, commaText, duration, text } from '../../../field.ts'

/** The fields of issue, sign and explain for names and validity. */
export const nameFields = {
  common_name: text({ about: 'Common name of the subject.' }),
  alt_names: commaText({
    about: 'Host names and e-mail addresses, separated by commas; 2.5.4.5;UTF8:x adds a serial number.',
  }),
  ip_sans: commaList({ about: 'IP addresses.' }),
  uri_sans: commaList({ about: 'URIs.' }),
  other_sans: commaList({ about: 'Other names, as OID;UTF8:value.' }),
  serial_number: text({ about: 'Serial number in the subject; not that of the certificate.' }),
  user_ids: commaList({ about: 'User IDs in the subject.' }),
  exclude_cn_from_sans: boolean({ about: 'Whether the common name is left out of the alternative names.' }),
  ttl: duration({ about: 'Validity of the certificate; absent means the role’s ttl.' }),
  not_after: text({ about: 'NotAfter, as YYYY-MM-DDTHH:MM:SSZ, instead of a ttl.' }),
}

const nameBody = Type.Object(nameFields)

/** The contents of a request; empty texts and lists ask for nothing. */
export interface NameRequest {
  readonly commonName: string
  /** Host names, e-mail addresses and `2.5.4.5;UTF8:…`, one each. */
  readonly altNames: readonly string[]
  readonly ipSans: readonly string[]
  readonly uriSans: readonly string[]
  readonly otherSans: readonly string[]
  readonly serialNumber: string
  readonly userIds: readonly string[]
  readonly excludeCnFromSans: boolean
  /** 0 when absent. */
  readonly ttlSeconds: number
  readonly notAfter: string
  /** The contents of the CSR to sign; absent when the key is made here. */
  readonly csr?: CsrContents | undefined
}

/** The contents of a certification request that roles have rules for. Its signature is verified elsewhere. */
export interface CsrContents {
  readonly key: CsrKey
  /** '' when the subject has no common name. */
  readonly commonName: string
  readonly serialNumbers: readonly string[]
  readonly userIds: readonly string[]
  readonly dns: readonly string[]
  readonly email: readonly string[]
  /** 4 or 16 bytes each. */
  readonly ip: readonly Buffer[]
  readonly uri: readonly string[]
  readonly other: readonly CsrOtherName[]
  readonly extensions: readonly CsrExtension[]
}

/**
 * `type` is rsa, ec, ed25519 or the name of another type; `bits` the size of the modulus or the field, 0 for ed25519.
 */
export interface CsrKey {
  readonly type: string
  readonly bits: number
}

/** `value` is undefined when it is not a UTF8String. */
export interface CsrOtherName {
  readonly oid: string
  readonly value: string | undefined
}

/** `value` is the contents of extnValue. */
export interface CsrExtension {
  readonly oid: string
  readonly critical: boolean
  readonly value: Buffer
}

/** The most names of one certificate, and the most characters of one name. */
const maxNames = 10_000
const maxCharacters = 4096

/** @throws ApiError 400 for more, or longer, names than a certificate may have */
export function readNameRequest(body: Static<typeof nameBody>, csr?: CsrContents): NameRequest {
  const request: NameRequest = {
    commonName: body.common_name ?? '',
    altNames: filled(body.alt_names),
    ipSans: filled(body.ip_sans),
    uriSans: filled(body.uri_sans),
    otherSans: filled(body.other_sans),
    serialNumber: body.serial_number ?? '',
    userIds: filled(body.user_ids),
    excludeCnFromSans: body.exclude_cn_from_sans ?? false,
    ttlSeconds: body.ttl ?? 0,
    notAfter: body.not_after ?? '',
    csr,
  }
  checkSize(request, csr ? textsOf(csr) : none)
  return request
}

/** @param brought every text of the CSR */
function checkSize(request: NameRequest, brought: readonly string[]): void {
  const { altNames, ipSans, uriSans, otherSans, userIds } = request
  const listed = altNames.length + ipSans.length + uriSans.length + otherSans.length + userIds.length + brought.length
  // Common name and serial number are the other two.
  if (listed + 2 > maxNames) throw badRequest(`a certificate may have at most ${maxNames} names`)
  checkLength('common_name', request.commonName)
  checkLength('serial_number', request.serialNumber)
  for (const name of altNames) checkLength('alt_names', name)
  for (const name of ipSans) checkLength('ip_sans', name)
  for (const name of uriSans) checkLength('uri_sans', name)
  for (const name of otherSans) checkLength('other_sans', name)
  for (const name of userIds) checkLength('user_ids', name)
  for (const name of brought) checkLength('csr', name)
}

function checkLength(field: string, name: string): void {
  if (name.length > maxCharacters) throw badRequest(`${field}: a name may have at most ${maxCharacters} characters`)
}

const none: readonly string[] = []
const filled = (list: readonly string[] = none): readonly string[] =>
  list.length === 0 ? none : list.filter((entry) => entry !== '')

const textsOf = (csr: CsrContents): readonly string[] => [
  ...[csr.commonName, ...csr.serialNumbers, ...csr.userIds, ...csr.dns, ...csr.email, ...csr.uri],
  ...csr.ip.map(() => ''),
  ...csr.other.map(({ oid, value = '' }) => `${oid}${value}`),
]
