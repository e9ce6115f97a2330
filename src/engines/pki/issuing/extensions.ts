import type { Extension } from '../../../x509/extension.ts'
import { extensionOids, prepareExtension } from '../../../x509/extension.ts'
import { writeAuthorityInformationAccess } from '../../../x509/extensions/authorityinformationaccess.ts'
import { type BasicConstraints, writeBasicConstraints } from '../../../x509/extensions/basicconstraints.ts'
import { type CertificatePolicy, writeCertificatePolicies } from '../../../x509/extensions/certificatepolicies.ts'
import { writeCrlDistributionPoints } from '../../../x509/extensions/crldistributionpoints.ts'
import { writeExtendedKeyUsage } from '../../../x509/extensions/extendedkeyusage.ts'
import type { GeneralName } from '../../../x509/extensions/generalname.ts'
import { writeAuthorityKeyIdentifier, writeSubjectKeyIdentifier } from '../../../x509/extensions/keyidentifier.ts'
import { type KeyUsage, writeKeyUsage } from '../../../x509/extensions/keyusage.ts'
import { type NameConstraints, writeNameConstraints } from '../../../x509/extensions/nameconstraints.ts'
import { noRevAvail } from '../../../x509/extensions/norevavail.ts'
import { writeSubjectAltName } from '../../../x509/extensions/subjectaltname.ts'
import { emptyName } from '../../../x509/name.ts'
import type { AuthorityUrls } from '../authority/urls.ts'

/** The contents of a certificate besides its key and issuer: decided, but not signed yet. */
export interface Contents {
  /** DER of the name. */
  readonly subject: Buffer
  /** Present even if `brought` holds them as an extension. */
  readonly names: readonly GeneralName[]
  readonly keyUsages: readonly KeyUsage[]
  /** Dotted OIDs of purposes. */
  readonly extendedKeyUsages: readonly string[]
  /** Absent if the certificate has no such extension. */
  readonly basicConstraints?: BasicConstraints | undefined
  readonly policies: readonly CertificatePolicy[]
  readonly nameConstraints?: NameConstraints | undefined
  /** Whether it states that no revocation information exists (RFC 9608). */
  readonly neverRevoked: boolean
  /** Extensions from the request: each replaces the one that would be made here. */
  readonly brought: readonly Extension[]
}

/** The key identifiers and the issuer's URLs in a certificate. */
export interface Identifiers {
  readonly subjectKey: Buffer
  readonly authorityKey: Buffer
  readonly urls: AuthorityUrls
}

/** Writes an extension once for each value object: roles and issuers keep theirs, which never change. */
function preparing<T extends object>(write: (value: T) => Extension): (value: T) => Extension {
  const prepared = new WeakMap<T, Extension>()
  return (value) => {
    const known = prepared.get(value)
    if (known !== undefined) return known
    const made = prepareExtension(write(value))
    prepared.set(value, made)
    return made
  }
}

const keyUsageOf = preparing(writeKeyUsage)
const extendedKeyUsageOf = preparing(writeExtendedKeyUsage)
const basicConstraintsOf = preparing(writeBasicConstraints)
const policiesOf = preparing(writeCertificatePolicies)
const authorityKeyOf = preparing(writeAuthorityKeyIdentifier)
const crlDistributionPointsOf = preparing(writeCrlDistributionPoints)
const informationAccessOf = preparing(({ ocspServers, issuingCertificates }: AuthorityUrls) =>
  writeAuthorityInformationAccess({ ocsp: ocspServers, caIssuers: issuingCertificates }),
)
const caIssuersOf = preparing((caIssuers: readonly string[]) =>
  writeAuthorityInformationAccess({ ocsp: [], caIssuers }),
)

/** The extensions of a certificate in the reference's order. */
export function extensionsOf(contents: Contents, identifiers: Identifiers): readonly Extension[] {
  const made = extensionsMade(contents, identifiers)
  if (contents.brought.length === 0) return made
  const brought = new Map(contents.brought.map((extension) => [extension.oid, extension]))
  return [...made.map((extension) => take(brought, extension)), ...brought.values()]
}

/** The request's own extension of that kind, or else ours; removed from the map, so that it is taken once. */
function take(brought: Map<string, Extension>, extension: Extension): Extension {
  const given = brought.get(extension.oid)
  brought.delete(extension.oid)
  return given ?? extension
}

function extensionsMade(contents: Contents, { subjectKey, authorityKey, urls }: Identifiers): readonly Extension[] {
  const { keyUsages, extendedKeyUsages, basicConstraints, names, policies, nameConstraints, neverRevoked } = contents
  const { ocspServers, issuingCertificates, crlDistributionPoints } = urls
  const made: Extension[] = []
  if (keyUsages.length > 0) made.push(keyUsageOf(keyUsages))
  if (extendedKeyUsages.length > 0) made.push(extendedKeyUsageOf(extendedKeyUsages))
  if (basicConstraints) made.push(basicConstraintsOf(basicConstraints))
  made.push(writeSubjectKeyIdentifier(subjectKey), authorityKeyOf(authorityKey))
  // A certificate that is never revoked names no OCSP responder (RFC 9608 section 3).
  if (!neverRevoked && ocspServers.length > 0) made.push(informationAccessOf(urls))
  else if (issuingCertificates.length > 0) made.push(caIssuersOf(issuingCertificates))
  if (names.length > 0) made.push(writeSubjectAltName(names, contents.subject.equals(emptyName)))
  if (policies.length > 0) made.push(policiesOf(policies))
  if (nameConstraints) made.push(writeNameConstraints(nameConstraints))
  if (!neverRevoked && crlDistributionPoints.length > 0) made.push(crlDistributionPointsOf(crlDistributionPoints))
  if (neverRevoked) made.push(noRevAvail)
  return made
}

/** Extensions of a request that are never copied: a CA decides these. */
export const neverBrought: ReadonlySet<string> = new Set([
  extensionOids.basicConstraints,
  extensionOids.authorityKeyIdentifier,
  extensionOids.subjectKeyIdentifier,
])
