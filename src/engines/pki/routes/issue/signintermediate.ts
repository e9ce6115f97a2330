import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { showMoment } from '../../../../clock/moment.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, commaList, text } from '../../../../field.ts'
import { type Call, type Outcome, type Route, route } from '../../../../route.ts'
import { keyIdentifierOf, readCertificate } from '../../../../x509/certificate.ts'
import { type Extension, extensionOids } from '../../../../x509/extension.ts'
import { emptyName } from '../../../../x509/name.ts'
import type { CertificationRequest } from '../../../../x509/request.ts'
import { urlsOf } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'
import { circumstancesOf } from '../../input/circumstances.ts'
import {
  type CaBody,
  caFields,
  constraintsOf,
  decideAuthority,
  pathLengthOf,
  subjectFields,
} from '../../issuers/wishes.ts'
import { describeIssued, type Format, issuedAnswer } from '../../issuing/answer.ts'
import { contentsOf } from '../../issuing/contents.ts'
import { alternativeNames, csrContents, readCsr, requireSigned } from '../../issuing/csr.ts'
import { type Contents, neverBrought } from '../../issuing/extensions.ts'
import { type AbleIssuer, ableIssuer } from '../../issuing/issuer.ts'
import { authorityKeyOf, storeCertificate } from '../../issuing/leaf.ts'
import type { CsrContents } from '../../roles/request.ts'
import { keyUsagesOf, warningOfCaUsages, warningsOfUsages } from '../../roles/usages.ts'

const body = Type.Object({
  csr: text({ about: 'The certification request, PEM.' }),
  ...caFields,
  use_csr_values: boolean({ about: 'Whether subject, names and extensions are taken from the request.' }),
  skid: text({ about: 'Subject key identifier in hexadecimal, if it must differ from the usual one.' }),
  key_usage: commaList({ about: 'Further key usages; only DigitalSignature has an effect.' }),
})
type IntermediateCall = Call<PkiContext, typeof body>

/** Names come from the fields of the request; the CSR gives only the common name and the key. */
const onlyCommonName = (contents: CsrContents): CsrContents => ({
  ...contents,
  ...{ serialNumbers: [], userIds: [], dns: [], email: [], ip: [], uri: [], other: [], extensions: [] },
})

function wantedBody(body: CaBody, contents: CsrContents): CaBody {
  return body.common_name ? body : { ...body, common_name: contents.commonName }
}

const namesOfBody = [
  ...(['common_name', 'serial_number', 'alt_names', 'ip_sans', 'uri_sans', 'other_sans'] as const),
  ...(Object.keys(subjectFields) as (keyof typeof subjectFields)[]),
]

/** Tells which of the key usages that were sent have no effect. */
function warnOfUsages({ body, warn }: IntermediateCall): void {
  const { key_usage = [] } = body
  const useless = warningOfCaUsages(key_usage)
  for (const warning of warningsOfUsages({ key_usage })) warn(warning)
  if (useless !== undefined) warn(useless)
}

/** @throws ApiError 400 */
function contentsFor(
  { body, warn }: IntermediateCall,
  request: CertificationRequest,
  decided: Contents,
  { issuer }: AbleIssuer,
): Contents {
  const signing = keyUsagesOf(body.key_usage ?? []).filter((usage) => usage === 'DigitalSignature')
  const pathLength = pathLengthOf(body.max_path_length, issuer.certificate.basicConstraints?.pathLength)
  const nameConstraints = constraintsOf(body)
  const authority = {
    keyUsages: [...signing, 'CertSign', 'CRLSign'] as const,
    basicConstraints: { ca: true, pathLength },
    nameConstraints,
  }
  if (!body.use_csr_values) return { ...decided, ...authority }
  const ignored = namesOfBody.filter((field) => body[field]?.length)
  if (ignored.length > 0) warn(`use_csr_values takes these from the CSR, and ignored those sent: ${ignored.join(', ')}`)
  return {
    ...{ subject: request.subject, names: alternativeNames(request), extendedKeyUsages: [], policies: [] },
    ...{ neverRevoked: false, brought: broughtBy(request, nameConstraints !== undefined, warn) },
    ...authority,
  }
}

/** @param constrained whether the caller sets name constraints: a CSR cannot loosen them */
function broughtBy(
  { extensions }: CertificationRequest,
  constrained: boolean,
  warn: (text: string) => void,
): readonly Extension[] {
  const taken = extensions.filter(({ oid }) => !neverBrought.has(oid))
  if (!constrained || !taken.some(isNameConstraints)) return taken
  warn('the name constraints of the CSR were ignored: the request has its own')
  return taken.filter((extension) => !isNameConstraints(extension))
}

const isNameConstraints = ({ oid }: Extension): boolean => oid === extensionOids.nameConstraints

/** @throws ApiError 400 */
function subjectKeyOf(skid: string | undefined): Buffer | undefined {
  if (!skid) return undefined
  const hex = skid.replace(/[:\s-]/g, '')
  if (/^(?:[0-9a-f]{2})+$/i.test(hex) && hex.length <= 128) return Buffer.from(hex, 'hex')
  throw badRequest(
    'cannot parse requested SKID value as hex: it must have an even number of hexadecimal digits, at most 128',
  )
}

function readCaFormat(format = 'pem'): Format {
  if (format === 'pem' || format === 'der' || format === 'pem_bundle') return format
  throw badRequest('The "format" path parameter must be "pem" or "der"')
}

async function sign(call: IntermediateCall): Promise<Outcome> {
  const { context, mount, params, body, warn } = call
  const format = readCaFormat(body.format)
  const request = readCsr(body.csr)
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? 'default', 'issuing-certificates')
  const { issuer, key } = able
  const brought = csrContents(request)
  const decision = decideAuthority(wantedBody(body, brought), circumstancesOf(call), onlyCommonName(brought))
  requireSigned(request)
  for (const warning of decision.warnings) warn(warning)
  warnOfUsages(call)
  const contents = contentsFor(call, request, contentsOf(decision), able)
  if (contents.subject.equals(emptyName)) throw badRequest('a CA certificate needs a subject: give a common_name')
  if (contents.basicConstraints?.pathLength === 0) {
    warn(
      'Max path length of the signed certificate is zero. This certificate cannot be used to issue intermediate CA certificates.',
    )
  }
  const end = issuer.certificate.notAfter
  if (decision.validity.notAfter > end) {
    warn(
      `The expiration of the issued certificate (${showMoment(decision.validity.notAfter)}) is after the CA certificate's (${showMoment(end)}); chains may fail to validate after that.`,
    )
  }
  const chain = authority.chainOf(issuer).map(({ certificate }) => certificate)
  const { certificate } = await storeCertificate(call, able, async () =>
    context.issuance.sign({
      signer: await context.signers.of(key, issuer.certificate),
      wish: { signatureBits: body.signature_bits ?? 0, usePss: body.use_pss ?? false },
      issuer: issuer.certificate.subject,
      authorityKey: authorityKeyOf(able),
      urls: urlsOf(authority, issuer),
      subjectKey: subjectKeyOf(body.skid) ?? keyIdentifierOf(request.spki),
      ...{ chain, contents, spki: request.spki, validity: decision.validity, warn },
    }),
  )
  const { not_before: _, ...shown } = describeIssued({ certificate, chain }, format, [
    readCertificate(certificate.der),
    ...chain,
  ])
  return shown
}

const intermediateRoute = (path: string): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access: 'token',
    about: 'Makes a CA certificate for the key of a certification request.',
    body,
    answers: data(Type.Object(issuedAnswer)),
    run: sign,
  })

export const signIntermediate = intermediateRoute('root/sign-intermediate')
export const signIntermediateByIssuer = intermediateRoute('issuer/:issuer_ref/sign-intermediate')
