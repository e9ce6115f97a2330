import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { readPem, writePem } from '../../../../crypto/pem.ts'
import { signatureAlgorithmOf, signatureAlgorithms } from '../../../../crypto/signaturealgorithm.ts'
import { badRequest } from '../../../../errors.ts'
import { boolean, text } from '../../../../field.ts'
import type { CertificationSigner } from '../../../../keys/use/certification.ts'
import { type Call, type Data, type Route, route } from '../../../../route.ts'
import { type Certificate, readCertificate } from '../../../../x509/certificate.ts'
import { refusalOf } from '../../../../x509/constraints.ts'
import { type Extension, extensionOids } from '../../../../x509/extension.ts'
import { writeAuthorityInformationAccess } from '../../../../x509/extensions/authorityinformationaccess.ts'
import { writeCrlDistributionPoints } from '../../../../x509/extensions/crldistributionpoints.ts'
import { writeAuthorityKeyIdentifier } from '../../../../x509/extensions/keyidentifier.ts'
import { lint } from '../../../../x509/lint.ts'
import { Malformed } from '../../../../x509/malformed.ts'
import { writeCertificate, writeTbs } from '../../../../x509/tbs.ts'
import type { Issuer } from '../../authority/authority.ts'
import { pemOf } from '../../authority/pem.ts'
import { type AuthorityUrls, urlsOf, urlsOfSerial } from '../../authority/urls.ts'
import type { PkiContext } from '../../context.ts'
import { ableIssuer } from '../../issuing/issuer.ts'
import { authorityKeyOf } from '../../issuing/leaf.ts'
import { warnOfWeakKey } from '../../issuing/signature.ts'

const body = Type.Object({
  certificate: text({ about: 'The self-issued CA certificate, PEM.' }),
  require_matching_certificate_algorithms: boolean({ about: 'Whether both keys must have the same algorithm.' }),
})
type SelfIssuedCall = Call<PkiContext, typeof body>

/** @throws ApiError 400 */
function readSelfIssued(text: string | undefined): Certificate {
  const [der, ...more] = readPem(text ?? '', ['CERTIFICATE'])
  if (der === undefined) throw badRequest('certificate could not be PEM-decoded')
  if (more.length > 0) throw badRequest(`${more.length + 1} certificates found in PEM file, expected 1`)
  let certificate: Certificate
  try {
    certificate = readCertificate(der)
    certificate.publicKey()
  } catch (error) {
    throw error instanceof Malformed ? badRequest(`error parsing certificate: ${error.message}`) : error
  }
  if (!certificate.isCa) throw badRequest('given certificate is not a CA certificate')
  if (!certificate.isSelfIssued) throw badRequest('given certificate is not self-issued')
  return certificate
}

const replaced: ReadonlySet<string> = new Set([
  extensionOids.authorityKeyIdentifier,
  extensionOids.authorityInformationAccess,
  extensionOids.crlDistributionPoints,
])

/** Keeps all extensions except those that identify or locate the issuer. */
function extensionsFor({ extensions }: Certificate, authorityKey: Buffer, urls: AuthorityUrls): readonly Extension[] {
  const access = { ocsp: urls.ocspServers, caIssuers: urls.issuingCertificates }
  return [
    ...extensions.filter(({ oid }) => !replaced.has(oid)),
    writeAuthorityKeyIdentifier(authorityKey),
    ...(access.ocsp.length + access.caIssuers.length > 0 ? [writeAuthorityInformationAccess(access)] : []),
    ...(urls.crlDistributionPoints.length > 0 ? [writeCrlDistributionPoints(urls.crlDistributionPoints)] : []),
  ]
}

/** The algorithm of the submitted certificate, if the issuer's key can make such signatures. */
function algorithmFor({ algorithm }: Certificate, { algorithms }: CertificationSigner) {
  const own = [...signatureAlgorithms.values()].find(({ identifier }) => identifier.equals(algorithm))
  const name = algorithms.find((one) => one === own?.name) ?? algorithms[0]
  if (name === undefined) throw badRequest('the key of this issuer cannot sign certificates')
  return signatureAlgorithmOf(name)
}

/** The certificate is its owner's and may be old: faults that relying parties may reject cause only warnings. */
function warnOf(
  tbs: Buffer,
  { subject, subjectAltName }: Certificate,
  chain: readonly Certificate[],
): readonly string[] {
  const refusal = refusalOf({ subject, subjectAltName, isCa: true }, chain)
  return [...lint(tbs).map(({ rule, text }) => `${text} (${rule})`), ...(refusal === undefined ? [] : [refusal])]
}

/** The certificate outlives its issuer: shards must name that issuer even after its end. */
async function rememberOutlived({ authorities }: PkiContext, mount: SelfIssuedCall['mount'], { row: { id } }: Issuer) {
  const { crl } = (await authorities.of(mount)).settings
  // Without points the certificate has no URL of a shard.
  if (crl === null || crl.points === undefined || crl.points.length === 0 || crl.outlived?.includes(id)) return
  await authorities.change(mount, async (_tx, { settings, issuers }) => {
    if (!issuers.has(id)) throw badRequest(`unable to find PKI issuer for reference: ${id}`)
    const known = settings.crl ?? crl
    const outlived = [...(known.outlived ?? issuers.keys()), id]
    return { settings: { crl: { ...known, outlived } }, result: undefined }
  })
}

async function sign({ context, mount, params, body, warn }: SelfIssuedCall): Promise<Data> {
  const given = readSelfIssued(body.certificate)
  const authority = await context.authorities.of(mount)
  const able = ableIssuer(authority, params.issuer_ref ?? 'default', 'issuing-certificates')
  const { certificate: ca } = able.issuer
  const [theirs, ours] = [given.publicKey().asymmetricKeyType, ca.publicKey().asymmetricKeyType]
  if (body.require_matching_certificate_algorithms && theirs !== ours) {
    throw badRequest(
      `signing certificate's public key algorithm (${ours}) does not match submitted certificate's (${theirs}), and require_matching_certificate_algorithms is true`,
    )
  }
  context.database.requireClock()
  if (given.notAfter > ca.notAfter) await rememberOutlived(context, mount, able.issuer)
  const signer = await context.signers.of(able.key, ca)
  warnOfWeakKey(signer, warn)
  const { name, identifier } = algorithmFor(given, signer)
  const { serial, notBefore, notAfter, subject, spki } = given
  const tbs = writeTbs({
    ...{ serial, notBefore, notAfter, subject, spki, algorithm: identifier, issuer: ca.subject },
    extensions: extensionsFor(given, authorityKeyOf(able), urlsOfSerial(urlsOf(authority, able.issuer), serial)),
  })
  const chain = authority.chainOf(able.issuer).map(({ certificate }) => certificate)
  for (const warning of warnOf(tbs, given, chain)) warn(warning)
  const { signature } = await signer.sign(name, tbs)
  const der = writeCertificate(tbs, identifier, signature)
  return { certificate: writePem('CERTIFICATE', der), issuing_ca: pemOf(ca) }
}

/** @param access the path of the default issuer needs sudo, as in the reference */
const selfIssuedRoute = (path: string, access: 'sudo' | 'token'): Route<PkiContext, typeof body> =>
  route<PkiContext, typeof body>({
    method: 'POST',
    path,
    access,
    about: 'Signs a self-issued CA certificate by an issuer of the mount.',
    body,
    answers: data(Type.Object({ certificate: Type.String(), issuing_ca: Type.String() })),
    run: sign,
  })

export const signSelfIssued = selfIssuedRoute('root/sign-self-issued', 'sudo')
export const signSelfIssuedByIssuer = selfIssuedRoute('issuer/:issuer_ref/sign-self-issued', 'token')
