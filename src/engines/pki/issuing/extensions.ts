import type { Extension } from '../../../x509/extension.ts'
import { extensionOids } from '../../../x509/extension.ts'
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

/** What a certificate says of its subject: decided, and not signed yet. */
export interface Contents {
  /** DER of the name. */
  readonly subject: Buffer
  /** Also where an extension of a request brings them. */
  readonly names: readonly GeneralName[]
  readonly keyUsages: readonly KeyUsage[]
  /** Dotted OIDs of purposes. */
  readonly extendedKeyUsages: readonly string[]
  /** Absent where the certificate has no such extension. */
  readonly basicConstraints?: BasicConstraints | undefined
  readonly policies: readonly CertificatePolicy[]
  readonly nameConstraints?: NameConstraints | undefined
  /** RFC 9608. */
  readonly neverRevoked: boolean
  /** Brought by a request: each stands in place of the one that would be made here. */
  readonly brought: readonly Extension[]
}

/** What certificates of an issuer carry so that others find it. */
export interface Identifiers {
  readonly subjectKey: Buffer
  readonly authorityKey: Buffer
  readonly urls: AuthorityUrls
}

/** The extensions of a certificate in the order in which the reference writes them. */
export function extensionsOf(contents: Contents, identifiers: Identifiers): readonly Extension[] {
  const made = [...describing(contents), ...pointing(contents, identifiers)]
  const brought = new Map(contents.brought.map((extension) => [extension.oid, extension]))
  const replaced = made.map(({ order, extension }) => ({ order, extension: take(brought, extension) }))
  return [...replaced.toSorted((a, b) => a.order - b.order).map(({ extension }) => extension), ...brought.values()]
}

/** The request's own extension of that kind, once, or else ours. */
function take(brought: Map<string, Extension>, extension: Extension): Extension {
  const given = brought.get(extension.oid)
  brought.delete(extension.oid)
  return given ?? extension
}

interface Placed {
  readonly order: number
  readonly extension: Extension
}

const placed = (order: number, wanted: unknown, write: () => Extension): Placed[] =>
  wanted ? [{ order, extension: write() }] : []

function describing(contents: Contents): Placed[] {
  const { keyUsages, extendedKeyUsages, basicConstraints, names, policies, nameConstraints, neverRevoked } = contents
  const anonymous = contents.subject.equals(emptyName)
  return [
    ...placed(1, keyUsages.length > 0, () => writeKeyUsage(keyUsages)),
    ...placed(2, extendedKeyUsages.length > 0, () => writeExtendedKeyUsage(extendedKeyUsages)),
    ...(basicConstraints ? placed(3, true, () => writeBasicConstraints(basicConstraints)) : []),
    ...placed(7, names.length > 0, () => writeSubjectAltName(names, anonymous)),
    ...placed(8, policies.length > 0, () => writeCertificatePolicies(policies)),
    ...(nameConstraints ? placed(9, true, () => writeNameConstraints(nameConstraints)) : []),
    ...placed(11, neverRevoked, () => noRevAvail),
  ]
}

/** A certificate that is never revoked names nobody to ask about it (RFC 9608 section 3). */
function pointing({ neverRevoked }: Contents, { subjectKey, authorityKey, urls }: Identifiers): Placed[] {
  const ocsp = neverRevoked ? [] : urls.ocspServers
  const lists = neverRevoked ? [] : urls.crlDistributionPoints
  const caIssuers = urls.issuingCertificates
  return [
    ...placed(4, true, () => writeSubjectKeyIdentifier(subjectKey)),
    ...placed(5, true, () => writeAuthorityKeyIdentifier(authorityKey)),
    ...placed(6, ocsp.length + caIssuers.length > 0, () => writeAuthorityInformationAccess({ ocsp, caIssuers })),
    ...placed(10, lists.length > 0, () => writeCrlDistributionPoints(lists)),
  ]
}

/** Extensions of a request that are never taken over: a CA decides these. */
export const neverBrought: ReadonlySet<string> = new Set([
  extensionOids.basicConstraints,
  extensionOids.authorityKeyIdentifier,
  extensionOids.subjectKeyIdentifier,
])
