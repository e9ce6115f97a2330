import { type Static, Type } from 'typebox'
import { badRequest } from '../../../errors.ts'
import { boolean, commaList, duration, integer, text } from '../../../field.ts'
import type { GeneralName } from '../../../x509/extensions/generalname.ts'
import type { NameConstraints } from '../../../x509/extensions/nameconstraints.ts'
import { decide } from '../roles/decide.ts'
import type { Circumstances, Decision } from '../roles/decision.ts'
import { isPlainText } from '../roles/names/text.ts'
import { type CsrContents, nameFields, readNameRequest } from '../roles/request.ts'
import { anyName, createRole, type Role } from '../roles/role.ts'
import { domainBase, networkBase } from './constraintbase.ts'

/** Parts of a subject; for a leaf they come from its role. */
export const subjectFields = {
  ou: commaList({ about: 'OU of the subject.' }),
  organization: commaList({ about: 'O of the subject.' }),
  country: commaList({ about: 'C of the subject.' }),
  locality: commaList({ about: 'L of the subject.' }),
  province: commaList({ about: 'ST of the subject.' }),
  street_address: commaList({ about: 'Street of the subject.' }),
  postal_code: commaList({ about: 'Postal code of the subject.' }),
}

const constraintFields = {
  permitted_dns_domains: commaList({ about: 'Domains that DNS names below this CA must belong to.' }),
  excluded_dns_domains: commaList({ about: 'Domains that DNS names below this CA must not belong to.' }),
  permitted_ip_ranges: commaList({ about: 'Networks that IP addresses below this CA must belong to.' }),
  excluded_ip_ranges: commaList({ about: 'Networks that IP addresses below this CA must not belong to.' }),
  permitted_email_addresses: commaList({
    about: 'E-mail addresses, hosts or .domains that e-mail addresses must match.',
  }),
  excluded_email_addresses: commaList({
    about: 'E-mail addresses, hosts or .domains that e-mail addresses must not match.',
  }),
  permitted_uri_domains: commaList({ about: 'Hosts or .domains that the hosts of URIs must match.' }),
  excluded_uri_domains: commaList({ about: 'Hosts or .domains that the hosts of URIs must not match.' }),
}

export const caFields = {
  ...nameFields,
  ...subjectFields,
  ...constraintFields,
  max_path_length: integer({
    about: 'The most CA certificates below this one; -1 means only the signer’s limit.',
    maximum: 2 ** 31 - 1,
  }),
  not_before_duration: duration({ about: 'Time between NotBefore and the moment of issue; 30 s when absent.' }),
  signature_bits: integer({ about: 'SHA-2 size for RSA keys: 256, 384 or 512; 0 is 256.' }),
  use_pss: boolean({ about: 'Whether RSA keys sign with PSS.' }),
  format: text({ about: 'pem, der or pem_bundle; pem when absent.' }),
}
const caBody = Type.Object(caFields)
export type CaBody = Static<typeof caBody>

type SubjectField = keyof typeof subjectFields
const subjectNames = Object.keys(subjectFields) as readonly SubjectField[]

/**
 * The parts of the subject, without empty entries, which come from superfluous commas; a role drops them, too.
 * @throws ApiError 400 for a text that no attribute of a name can be
 */
function subjectPartsOf(body: Partial<CaBody>): Partial<Record<SubjectField, readonly string[]>> {
  const parts = subjectNames.map((field) => {
    const entries = (body[field] ?? []).filter((entry) => entry !== '')
    if (entries.every(isPlainText)) return [field, entries] as const
    throw badRequest(`${field} contains a control character`)
  })
  return Object.fromEntries(parts)
}

/**
 * The role of a request for a CA: no rule restricts its names, the request itself decides its contents.
 * @throws ApiError 400
 */
function authorityRole(body: Partial<CaBody>, keyType: 'rsa' | 'any'): Role {
  return createRole('', {
    ...anyName,
    // A CSR gives the key, and the parts that the route itself takes from it.
    ...{ use_csr_common_name: false, use_csr_sans: false },
    ...{ key_type: keyType, server_flag: false, client_flag: false, key_usage: ['CertSign', 'CRLSign'] },
    ...{ signature_bits: body.signature_bits ?? 0, use_pss: body.use_pss ?? false },
    not_before_duration: body.not_before_duration ?? 30,
    ...subjectPartsOf(body),
  })
}

/** The contents of a CA certificate, or of a request for one. @throws ApiError 400 */
export function decideAuthority(body: CaBody, circumstances: Circumstances, csr?: CsrContents): Decision {
  // A key made here was checked before; that of a CSR is checked now.
  return decide(authorityRole(body, csr ? 'any' : 'rsa'), readNameRequest(body, csr), circumstances)
}

type ConstraintFields = { readonly [K in keyof typeof constraintFields]?: readonly string[] | undefined }

/** The name constraints of a request; undefined if it has no constraints. @throws ApiError 400 for an invalid one */
export function constraintsOf(body: ConstraintFields): NameConstraints | undefined {
  const bases = (way: 'permitted' | 'excluded'): GeneralName[] => {
    const domains = (kind: 'dns' | 'email' | 'uri', field: keyof ConstraintFields): GeneralName[] =>
      filled(body[field]).map((value) => domainBase(field, kind, value))
    return [
      ...domains('dns', `${way}_dns_domains`),
      ...filled(body[`${way}_ip_ranges`]).map((range) => networkBase(`${way}_ip_ranges`, range)),
      ...domains('email', `${way}_email_addresses`),
      ...domains('uri', `${way}_uri_domains`),
    ]
  }
  const [permitted, excluded] = [bases('permitted'), bases('excluded')]
  return permitted.length + excluded.length === 0 ? undefined : { permitted, excluded }
}

const filled = (list: readonly string[] = []): string[] =>
  list.map((entry) => entry.trim()).filter((entry) => entry !== '')

/**
 * The path length of a CA certificate as requested; if that is -1 or absent, one less than the signer's.
 * @param signer the path length of the signing certificate; undefined is no limit
 * @throws ApiError 400
 */
export function pathLengthOf(wanted: number | undefined, signer: number | undefined): number | undefined {
  if (signer === 0) {
    throw badRequest('signing certificate has a max path length of zero, and cannot issue further CA certificates')
  }
  if (wanted !== undefined && wanted < -1) throw badRequest('max_path_length must be -1 or greater')
  if (wanted !== undefined && wanted >= 0) return wanted
  return signer === undefined ? undefined : signer - 1
}
