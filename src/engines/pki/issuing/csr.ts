import { readBlocks, readPem } from '../../../crypto/pem.ts'
import { badRequest } from '../../../errors.ts'
import { extensionOf } from '../../../x509/certificate.ts'
import { extensionOids } from '../../../x509/extension.ts'
import type { GeneralName } from '../../../x509/extensions/generalname.ts'
import { readSubjectAltName } from '../../../x509/extensions/subjectaltname.ts'
import { Malformed } from '../../../x509/malformed.ts'
import { attributeTypes, type NameAttribute, readName } from '../../../x509/name.ts'
import { type CertificationRequest, readRequest, verifyRequest } from '../../../x509/request.ts'
import type { CsrContents } from '../roles/request.ts'

const longestPem = 128 * 1024

/** Reads the CSR of a request. Its signature is not verified yet. @throws ApiError 400 */
export function readCsr(text: string | undefined): CertificationRequest {
  if (!text) throw badRequest('"csr" is empty')
  if (text.length > longestPem) throw badRequest(`csr has more than ${longestPem} characters`)
  const der = requestIn(text)
  if (der === undefined) throw badRequest('csr contains no data')
  try {
    return readRequest(der)
  } catch (error) {
    throw unreadable(error)
  }
}

/** The first block with the label of a request, else the first of any label, as the reference reads it. */
function requestIn(text: string): Buffer | undefined {
  const [labelled] = readPem(text, ['CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'])
  return labelled ?? readBlocks(text, 1)[0]?.der
}

/** @throws ApiError 400 for a CSR that its own key has not signed */
export function requireSigned(request: CertificationRequest): void {
  let good: boolean
  try {
    good = verifyRequest(request)
  } catch (error) {
    throw unreadable(error)
  }
  if (!good) throw badRequest('request signature invalid')
}

const unreadable = (error: unknown): unknown =>
  error instanceof Malformed
    ? badRequest(`certificate request could not be parsed: ${error.message}`, { cause: error })
    : error

/** The parts of a CSR that roles have rules for. @throws ApiError 400 for names that cannot be read */
export function csrContents(request: CertificationRequest): CsrContents {
  const attributes = readName(request.subject).flat()
  const names = alternativeNames(request)
  const texts = (kind: 'dns' | 'email' | 'uri'): string[] =>
    names.flatMap((name) => (name.kind === kind ? [name.value as string] : []))
  const { family, bits } = request.subjectKey
  return {
    key: { type: family, bits: family === 'ed25519' ? 0 : bits },
    commonName: valuesOf(attributes, attributeTypes.commonName).at(-1) ?? '',
    serialNumbers: valuesOf(attributes, attributeTypes.serialNumber),
    userIds: valuesOf(attributes, attributeTypes.userId),
    dns: texts('dns'),
    email: texts('email'),
    uri: texts('uri'),
    ip: names.flatMap((name) => (name.kind === 'ip' ? [name.value] : [])),
    other: names.flatMap((name) =>
      name.kind === 'other' ? [{ oid: name.oid, value: typeof name.value === 'string' ? name.value : undefined }] : [],
    ),
    extensions: request.extensions,
  }
}

/** The alternative names that a CSR asks for, unchanged. @throws ApiError 400 */
export function alternativeNames(request: CertificationRequest): readonly GeneralName[] {
  const extension = extensionOf(request, extensionOids.subjectAltName)
  if (extension === undefined) return []
  try {
    return readSubjectAltName(extension.value)
  } catch (error) {
    throw unreadable(error)
  }
}

/** Alternative names of the kinds that a role can allow. */
const allowable: ReadonlySet<string> = new Set(['dns', 'email', 'ip', 'uri', 'other'])

/**
 * A warning about names of a CSR that are left out because no role can allow them; undefined without such names.
 * @throws ApiError 400
 */
export function leftOut(request: CertificationRequest): string | undefined {
  const count = alternativeNames(request).filter(({ kind }) => !allowable.has(kind)).length
  if (count === 0) return undefined
  return `${count} alternative names of the CSR were left out: roles cannot allow names of such kinds, for example directory names`
}

const valuesOf = (attributes: readonly NameAttribute[], wanted: string): string[] =>
  attributes.flatMap(({ type, value }) => (type === wanted ? [value] : []))
