import { Type } from 'typebox'
import { badRequest } from '../../../../errors.ts'
import { boolean, commaList, integer, text } from '../../../../field.ts'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import { type Extension, extensionOids } from '../../../../x509/extension.ts'
import { readBasicConstraints } from '../../../../x509/extensions/basicconstraints.ts'
import { readKeyUsage } from '../../../../x509/extensions/keyusage.ts'
import { Malformed } from '../../../../x509/malformed.ts'
import { attributeTypes, emptyName, joinNames, writeName } from '../../../../x509/name.ts'
import type { CertificationRequest } from '../../../../x509/request.ts'
import type { PkiContext } from '../../context.ts'
import { leafAnswer, readFormat } from '../../issuing/answer.ts'
import { alternativeNames, readCsr } from '../../issuing/csr.ts'
import { type Contents, neverBrought } from '../../issuing/extensions.ts'
import { requireRole } from '../../issuing/role.ts'
import { anyName, createRole, type Role } from '../../roles/role.ts'
import { checkPurposes } from '../../roles/rules.ts'
import { extendedKeyUsagesOf, keyUsagesOf, warningsOfUsages } from '../../roles/usages.ts'
import { certify } from './certify.ts'
import { leafFields } from './fields.ts'

const body = Type.Object({
  csr: text({ about: 'The certification request, PEM.' }),
  name: text({ about: 'The role, if the path names none.' }),
  ...leafFields,
  key_usage: commaList({ about: 'Key usages, if the CSR asks for none.' }),
  ext_key_usage: commaList({ about: 'Extended key usages by name, if the CSR asks for none.' }),
  ext_key_usage_oids: commaList({ about: 'Extended key usages by OID, if the CSR asks for none.' }),
  signature_bits: integer({ about: 'SHA-2 size for RSA issuers: 256, 384 or 512; 0 is 256.' }),
  use_pss: boolean({ about: 'Whether RSA issuers sign with PSS.' }),
  basic_constraints_valid_for_non_ca: boolean({ about: 'Whether the certificate says CA:FALSE.' }),
})
type VerbatimCall = Call<PkiContext, typeof body>

/**
 * Every name is allowed; a named role gives only times, storage, issuer and basic constraints. The alternative names
 * are copied as they are, so that no rule reads them: lint judges them in the certificate.
 */
function verbatimRole(named: Role | undefined, body: VerbatimCall['body']): Role {
  return createRole(named?.name ?? '', {
    ...anyName,
    ...{ key_type: 'any', use_csr_common_name: true, use_csr_sans: false },
    ...{ signature_bits: body.signature_bits ?? 0, use_pss: body.use_pss ?? false },
    basic_constraints_valid_for_non_ca:
      body.basic_constraints_valid_for_non_ca ?? named?.basicConstraintsValidForNonCa ?? false,
    ttl: named?.ttl ?? 0,
    max_ttl: named?.maxTtl ?? 0,
    not_before_duration: named?.notBeforeDuration ?? 30,
    generate_lease: named?.generateLease ?? false,
    no_store: named?.noStore ?? false,
    issuer_ref: named?.issuerRef ?? 'default',
  })
}

/** @throws ApiError 400 for a request that would make a CA */
function refuseAuthority({ extensions }: CertificationRequest): void {
  const find = (oid: string) => extensions.find((extension) => extension.oid === oid)
  const [constraints, usage] = [find(extensionOids.basicConstraints), find(extensionOids.keyUsage)]
  try {
    if (constraints !== undefined && readBasicConstraints(constraints.value).ca) {
      throw badRequest('the request asks for CA:true: a CA certificate is made by sign-intermediate')
    }
    if (usage !== undefined && readKeyUsage(usage.value).includes('CertSign')) {
      throw badRequest('the request asks for the key usage keyCertSign: a CA certificate is made by sign-intermediate')
    }
  } catch (error) {
    throw error instanceof Malformed ? badRequest(`certificate request could not be parsed: ${error.message}`) : error
  }
}

const usualKeyUsage = ['DigitalSignature', 'KeyAgreement', 'KeyEncipherment']

/** Subject, names and extensions of the request, unchanged; `user_ids` follow the attributes of the subject. */
function verbatim(request: CertificationRequest, role: Role, { body, warn }: VerbatimCall): Contents {
  const subject = joinNames(request.subject, userIdsIn(body))
  const taken = request.extensions.filter(({ oid }) => !neverBrought.has(oid))
  return {
    subject,
    names: alternativeNames(request),
    keyUsages: keyUsagesOf(body.key_usage ?? usualKeyUsage),
    extendedKeyUsages: extendedKeyUsagesOf(body.ext_key_usage ?? [], body.ext_key_usage_oids ?? []),
    basicConstraints: role.basicConstraintsValidForNonCa ? { ca: false } : undefined,
    policies: [],
    neverRevoked: false,
    brought: subject.equals(emptyName) ? withCriticalNames(taken, warn) : taken,
  }
}

/**
 * Without a subject the alternative names are critical. That is the issuer's duty (RFC 5280 section 4.2.1.6), and many
 * tools leave it to the issuer.
 */
const withCriticalNames = (extensions: readonly Extension[], warn: (text: string) => void): readonly Extension[] =>
  extensions.map((extension) => {
    if (extension.oid !== extensionOids.subjectAltName || extension.critical) return extension
    warn('the subjectAltName of the CSR was made critical, because the subject is empty')
    return { ...extension, critical: true }
  })

function userIdsIn({ user_ids: given = [] }: VerbatimCall['body']): Buffer {
  const values = given.filter((value) => value !== '').map((value) => ({ type: attributeTypes.userId, value }))
  return values.length === 0 ? emptyName : writeName([values])
}

const namesOfBody = [
  ...(['common_name', 'alt_names', 'ip_sans', 'uri_sans', 'other_sans', 'serial_number'] as const),
  'exclude_cn_from_sans',
] as const

/** The body without its names: only those of the CSR count. */
function withoutNames({ body, warn }: VerbatimCall): VerbatimCall['body'] {
  const given = namesOfBody.filter((field) => body[field])
  if (given.length > 0) warn(`sign-verbatim takes names only from the CSR, and ignored these: ${given.join(', ')}`)
  const rest = { ...body }
  for (const field of given) delete rest[field]
  return rest
}

async function sign(call: VerbatimCall): Promise<Outcome> {
  const { context, mount, params, body } = call
  const name = params.role ?? body.name ?? ''
  const named = name === '' ? undefined : await requireRole(context, mount, name)
  const role = verbatimRole(named, body)
  const format = readFormat(body.format)
  checkPurposes(body.ext_key_usage_oids ?? [])
  const request = readCsr(body.csr)
  refuseAuthority(request)
  const contents = () => verbatim(request, role, call)
  return certify(call, {
    ...{ role, request, format, body: withoutNames(call), contents },
    warnings: warningsOfUsages(body),
  })
}

const verbatimRoute = (path: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a certificate from a certification request unchanged, without rules for names.',
    body,
    answers: leafAnswer,
    run: sign,
  })

export const signVerbatim = verbatimRoute('sign-verbatim')
export const signVerbatimByRole = verbatimRoute('sign-verbatim/:role')
export const signVerbatimByIssuer = verbatimRoute('issuer/:issuer_ref/sign-verbatim')
export const signVerbatimByIssuerAndRole = verbatimRoute('issuer/:issuer_ref/sign-verbatim/:role')
