import { Type } from 'typebox'
import { strings, timestamp } from '../../../answers.ts'
import type { Data } from '../../../route.ts'
import { readCertificate } from '../../../x509/certificate.ts'
import { commonNameOf } from '../../../x509/name.ts'
import { readSubjectKey } from '../../../x509/publickey.ts'
import type { StoredCertificate } from './certificates.ts'
import type { CertificateRow } from './tables.ts'

/** The members of revocationTimes. */
export const revocationTimesAnswer = {
  revocation_time: Type.Integer(),
  revocation_time_rfc3339: Type.String(),
}

/** The members of describeStored. */
export const storedAnswer = Type.Object({
  common_name: Type.String(),
  issuer: Type.String(),
  key_type: Type.String(),
  key_bits: Type.Integer(),
  not_before: timestamp,
  not_after: timestamp,
  dns_names: strings,
})

/** The time of a revocation, in whole seconds and in RFC 3339, without trailing zeros. @param at milliseconds */
export const revocationTimes = (at: number): Data => ({
  revocation_time: Math.floor(at / 1000),
  revocation_time_rfc3339: new Date(at).toISOString().replace(/\.?0+Z$/, 'Z'),
})

/** The same members of what is not revoked. */
export const notRevoked = { revocation_time: 0, revocation_time_rfc3339: '' }

/** The revocation of a certificate, or its absence, as a read shows it. */
export function describeRevocation({ revocation }: StoredCertificate): Data {
  if (revocation === undefined) return notRevoked
  const { revokedAt, issuer } = revocation
  return { ...revocationTimes(revokedAt), ...(issuer === '' ? {} : { issuer_id: issuer }) }
}

const namesShown = 5

/** A stored certificate in a list, described from its own bytes. */
export function describeStored({ der, issuer }: CertificateRow): Data {
  const certificate = readCertificate(der)
  const { family, bits } = readSubjectKey(certificate.spki)
  const names = certificate.subjectAltName.flatMap((name) => (name.kind === 'dns' ? [name.value] : []))
  return {
    common_name: commonNameOf(certificate.subject) ?? '',
    issuer,
    key_type: family,
    key_bits: family === 'ed25519' ? 0 : bits,
    not_before: new Date(certificate.notBefore).toISOString(),
    not_after: new Date(certificate.notAfter).toISOString(),
    dns_names: names.slice(0, namesShown),
  }
}
