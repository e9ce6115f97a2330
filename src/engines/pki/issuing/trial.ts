import { signatureAlgorithmOf } from '../../../crypto/signaturealgorithm.ts'
import { keyIdentifierOf } from '../../../x509/certificate.ts'
import { attributeTypes, writeName } from '../../../x509/name.ts'
import { writeTbs } from '../../../x509/tbs.ts'
import { urlsOfSerial } from '../authority/urls.ts'
import { sharedBy } from '../roles/decide.ts'
import type { Decision } from '../roles/decision.ts'
import type { Role } from '../roles/role.ts'
import { subjectOf } from '../roles/subject.ts'
import { contentsOf } from './contents.ts'
import { extensionsOf } from './extensions.ts'
import { type Judgement, judge } from './judgement.ts'
import type { IssuerPart } from './leaf.ts'

/** A certificate's checks before it is made: what its role and request decide is complete, the rest may stand in. */

const standIns = {
  serial: Buffer.alloc(20, 1),
  algorithm: signatureAlgorithmOf('ECDSAWithSHA256').identifier,
  issuer: writeName([[{ type: attributeTypes.commonName, value: 'issuer' }]]),
}
const anyIssuer = {
  authorityKey: Buffer.alloc(20),
  urls: { ocspServers: [], issuingCertificates: [], crlDistributionPoints: [], shards: 0 },
}

/** Of an Ed25519 key. */
const anyKey: Buffer = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.alloc(32)])

/**
 * The judgement of signing about the certificate of a decision.
 * @param spki DER; absent for a key that is not made yet, and then only the refusal counts
 * @param part of the issuer, if it is known
 */
export function judgeDecision(
  decision: Omit<Decision, 'warnings'>,
  spki = anyKey,
  part: Pick<IssuerPart, 'authorityKey' | 'urls'> = anyIssuer,
): Judgement {
  const contents = contentsOf(decision)
  const urls = urlsOfSerial(part.urls, standIns.serial)
  const identifiers = { subjectKey: keyIdentifierOf(spki), authorityKey: part.authorityKey, urls }
  const { notBefore, notAfter } = decision.validity
  const { subject } = contents
  return judge(
    writeTbs({ ...standIns, subject, spki, notBefore, notAfter, extensions: extensionsOf(contents, identifiers) }),
  )
}

const noNames = { other: [], dns: [], email: [], ip: [], uri: [] }

/** The reason why a role can issue nothing: what its settings put into every certificate is invalid. */
export const faultOfRole = (role: Role): string | undefined =>
  judgeDecision({
    subject: subjectOf(role, { commonName: 'a', serialNumbers: [], userIds: [] }),
    names: noNames,
    validity: { notBefore: 0, notAfter: 0 },
    ...sharedBy(role),
    extensions: [],
  }).refusal
