import type { Data } from '../../../route.ts'
import { readCertificate } from '../../../x509/certificate.ts'
import { commonNameOf } from '../../../x509/name.ts'
import { readSubjectKey } from '../../../x509/publickey.ts'
import type { StoredCertificate } from './certificates.ts'
import type { CertificateRow } from './tables.ts'

/** When something was revoked, in whole seconds and as RFC 3339 writes it, without zeros at its end. @param at milliseconds */
export const revocationTimes = (at: number): Data => ({
  revocation_time: Math.floor(at / 1000),
  revocation_time_rfc3339: new Date(at).toISOString().replace(/\.?0+Z$/, 'Z'),
})

/** Whether and when a certificate was revoked, as its read shows it. */
export function describeRevocation({ revocation }: StoredCertificate): Data {
  if (revocation === undefined) return { revocation_time: 0, revocation_time_rfc3339: '' }
  return { ...revocationTimes(revocation.revokedAt), issuer_id: revocation.issuer }
}

const namesShown = 5

/** A stored certificate in a list, as its own bytes say it. */
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
