import { type Cursor, within } from '../crypto/cursor.ts'
import { asn1, contextAround, NotDer } from '../crypto/der.ts'
import { type Extension, extensionOids } from './extension.ts'
import { readAuthorityInformationAccess } from './extensions/authorityinformationaccess.ts'
import { readBasicConstraints } from './extensions/basicconstraints.ts'
import { readCertificatePolicies } from './extensions/certificatepolicies.ts'
import { readCrlDistributionPoints } from './extensions/crldistributionpoints.ts'
import { readExtendedKeyUsage } from './extensions/extendedkeyusage.ts'
import { readAuthorityKeyIdentifier, readSubjectKeyIdentifier } from './extensions/keyidentifier.ts'
import { readKeyUsage } from './extensions/keyusage.ts'
import { readNameConstraints } from './extensions/nameconstraints.ts'
import { readNoRevAvail } from './extensions/norevavail.ts'
import { readSubjectAltName } from './extensions/subjectaltname.ts'
import { lintAltNames } from './lint/altnames.ts'
import { lintCriticality } from './lint/criticality.ts'
import { error, type Finding, warning } from './lint/finding.ts'
import { lintKey } from './lint/key.ts'
import { lintName } from './lint/names.ts'
import { remembering } from './lint/remembering.ts'
import { lintUsage } from './lint/usage.ts'
import { Malformed } from './malformed.ts'
import { emptyName } from './name.ts'
import { readSubjectKey } from './publickey.ts'
import { mostSerialBytes } from './serial.ts'
import { readTbs, type Tbs } from './tbs.ts'
import { firstUtcTime, isUtcTime, readTime } from './time.ts'

/**
 * Reads a certificate that is about to be signed as a relying party would, and checks it against the profile of RFC
 * 5280.
 * @param der TBSCertificate
 * @returns errors and warnings in any order
 */
export function lint(der: Buffer): readonly Finding[] {
  try {
    const tbs = readTbs(der)
    return [...lintFields(tbs), ...lintEncoding(der), ...lintExtensions(tbs)]
  } catch (cause) {
    if (cause instanceof Malformed || cause instanceof NotDer) return [error('malformed', cause.message)]
    throw cause
  }
}

/** Serial number, names and validity (sections 4.1.2.2 to 4.1.2.6). */
function lintFields({ serial, issuer, subject, notBefore, notAfter }: Tbs): Finding[] {
  const findings = [...(issuer.equals(subject) ? [] : lintIssuer(issuer)), ...lintName(subject, 'subject')]
  if (serial.length === 1 && serial[0] === 0) findings.push(error('serial_positive', 'the serial number is zero'))
  if (serial.length === mostSerialBytes && (serial[0] ?? 0) > 0x7f) {
    findings.push(error('serial_length', `the serial number takes more than ${mostSerialBytes} octets`))
  }
  if (issuer.equals(emptyName)) findings.push(error('issuer_empty', 'the issuer is an empty name'))
  if (notAfter < notBefore) findings.push(error('validity_order', 'the validity ends before it begins'))
  return findings
}

/**
 * The issuer is copied from the certificate of the CA (section 4.1.2.4), which exists: nobody who asks for a
 * certificate can mend it.
 */
const lintIssuer = remembering((issuer: Buffer): readonly Finding[] =>
  lintName(issuer, 'issuer').map(({ rule, text }) => warning(rule, text)),
)

const longestNotice = 200

/**
 * Faults that our own reader tolerates although DER or RFC 5280 forbids them: types of times, and defaults that are
 * written out.
 */
const lintEncoding = (der: Buffer): readonly Finding[] =>
  within(der, asn1.sequence, (tbs) => {
    const findings: Finding[] = []
    if (tbs.tag === contextAround(0)) tbs.skip()
    else findings.push(error('version', 'the certificate is not of version 3'))
    for (const tag of [asn1.integer, asn1.sequence, asn1.sequence]) tbs.skip(tag)
    const validity = tbs.enter(asn1.sequence)
    if (!isTimeTyped(validity) || !isTimeTyped(validity)) {
      findings.push(
        error('validity_encoding', 'times are UTCTime from 1950 through 2049 and GeneralizedTime from 2050 on'),
      )
    }
    tbs.skip(asn1.sequence)
    tbs.skip(asn1.sequence)
    if (tbs.more && hasWrittenFalse(tbs.enter(contextAround(3)).enter(asn1.sequence))) {
      findings.push(error('default_encoding', 'an extension encodes the default critical=FALSE'))
    }
    return findings
  })

/** Neither type has a time before 1950. */
function isTimeTyped(validity: Cursor): boolean {
  const utc = validity.tag === asn1.utcTime
  const time = readTime(validity)
  return utc === isUtcTime(time) && time >= firstUtcTime
}

function hasWrittenFalse(list: Cursor): boolean {
  let found = false
  while (list.more) {
    const extension = list.enter(asn1.sequence)
    extension.skip(asn1.oid)
    if (extension.tag === asn1.boolean && !extension.boolean()) found = true
  }
  return found
}

/** Readers of extensions that the certificates of a role or issuer have in common. */
const common = {
  accessOf: remembering(readAuthorityInformationAccess),
  authorityKeyOf: remembering(readAuthorityKeyIdentifier),
  basicConstraintsOf: remembering(readBasicConstraints),
  keyUsageOf: remembering(readKeyUsage),
  pointsOf: remembering(readCrlDistributionPoints),
  policiesOf: remembering(readCertificatePolicies),
  purposesOf: remembering(readExtendedKeyUsage),
}

/** Reads every known extension, so that a malformed one is found here, not by a relying party. @throws Malformed */
function lintExtensions({ extensions, subject, issuer, spki }: Tbs): readonly Finding[] {
  const find = (oid: string): Extension | undefined => extensions.find((extension) => extension.oid === oid)
  const read = <T>(oid: string, reader: (value: Buffer) => T): T | undefined => {
    const value = find(oid)?.value
    return value && reader(value)
  }
  const basic = find(extensionOids.basicConstraints)
  const basicConstraints = basic && common.basicConstraintsOf(basic.value)
  const key = readSubjectKey(spki)
  const findings = [
    ...lintKey(key),
    ...lintCriticality(extensions),
    ...lintUsage({
      basicConstraints,
      basicConstraintsCritical: basic?.critical === true,
      keyUsage: read(extensionOids.keyUsage, common.keyUsageOf),
      key,
    }),
    ...lintSubject(subject, find(extensionOids.subjectAltName), basicConstraints?.ca === true),
    ...lintIdentifiers({
      ca: basicConstraints?.ca === true,
      selfIssued: subject.equals(issuer),
      subjectKeyId: read(extensionOids.subjectKeyIdentifier, readSubjectKeyIdentifier),
      authorityKeyId: read(extensionOids.authorityKeyIdentifier, common.authorityKeyOf)?.keyIdentifier,
    }),
    ...lintRevocation(find, basicConstraints?.ca === true),
  ]
  if (basicConstraints?.ca === false && basic && basic.value.length > 2) {
    findings.push(error('default_encoding', 'basicConstraints encodes the default cA=FALSE'))
  }
  if (read(extensionOids.nameConstraints, readNameConstraints) && !basicConstraints?.ca) {
    findings.push(error('name_constraints_ca', 'nameConstraints are for CA certificates only'))
  }
  const purposes = read(extensionOids.extendedKeyUsage, common.purposesOf) ?? []
  if (new Set(purposes).size < purposes.length)
    findings.push(warning('purpose_duplicate', 'extKeyUsage: a purpose comes twice'))
  const notices = (read(extensionOids.certificatePolicies, common.policiesOf) ?? []).map(({ notice }) => notice)
  if (notices.some((notice) => notice !== undefined && [...notice].length > longestNotice)) {
    findings.push(error('policy_notice', `certificatePolicies: a notice is longer than ${longestNotice} characters`))
  }
  return findings
}

/** The name is in the subject, or in critical alternative names (section 4.2.1.6). */
function lintSubject(subject: Buffer, altNames: Extension | undefined, ca: boolean): readonly Finding[] {
  const findings = [...(altNames ? lintAltNames(readSubjectAltName(altNames.value)) : [])]
  const empty = subject.equals(emptyName)
  if (empty && ca) findings.push(error('subject_empty', 'a CA certificate needs a subject'))
  if (empty && !altNames?.critical) {
    findings.push(error('subject_empty', 'an empty subject needs a critical subjectAltName'))
  }
  if (!empty && altNames?.critical) {
    findings.push(warning('extension_criticality', 'subjectAltName should not be critical when there is a subject'))
  }
  return findings
}

interface Identifiers {
  readonly ca: boolean
  readonly selfIssued: boolean
  readonly subjectKeyId: Buffer | undefined
  readonly authorityKeyId: Buffer | undefined
}

/** Sections 4.2.1.1 and 4.2.1.2. */
function lintIdentifiers({ ca, selfIssued, subjectKeyId, authorityKeyId }: Identifiers): readonly Finding[] {
  const findings: Finding[] = []
  if (authorityKeyId === undefined && !selfIssued) {
    findings.push(error('authority_key_id', 'authorityKeyIdentifier has no key identifier'))
  }
  if (subjectKeyId === undefined) {
    const found = ca ? error : warning
    findings.push(found('subject_key_id', 'subjectKeyIdentifier is missing'))
  }
  return findings
}

/** The places of revocation information, or their absence (RFC 9608 section 3). */
function lintRevocation(find: (oid: string) => Extension | undefined, ca: boolean): readonly Finding[] {
  const access = find(extensionOids.authorityInformationAccess)
  const ocsp = access === undefined ? [] : common.accessOf(access.value).ocsp
  const points = [extensionOids.crlDistributionPoints, extensionOids.freshestCrl].map(find)
  for (const point of points) if (point) common.pointsOf(point.value)
  const never = find(extensionOids.noRevAvail)
  if (never === undefined) return []
  readNoRevAvail(never.value)
  const contradicted = ca || ocsp.length > 0 || points.some((point) => point !== undefined)
  return contradicted
    ? [
        error(
          'no_rev_avail',
          'noRevAvail is not allowed in CA certificates, nor with CRL distribution points or OCSP URLs',
        ),
      ]
    : []
}
