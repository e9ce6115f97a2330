import { nextTurn } from '../../../after.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { isSignedBy } from '../../../x509/chain.ts'
import type { Authority, Issuer } from '../authority/authority.ts'
import { crlIssuerOf } from '../authority/crlissuer.ts'

/** Verifications in one turn of the event loop: some milliseconds. */
const verificationsAtOnce = 32

/**
 * The issuer of a mount that signed a certificate, by name and key. Of several with that name and key it is the named
 * one, else the default, else the first; never one with the name and key of the certificate itself, since a list does
 * not name its signer.
 * @param named uuid of the issuer's row
 */
export async function issuerThatSigned(
  authority: Authority,
  certificate: Certificate,
  named = '',
): Promise<Issuer | undefined> {
  const own = crlIssuerOf(certificate)
  const { defaultIssuer } = authority
  const first = [authority.issuers.get(named), defaultIssuer].filter((issuer) => issuer !== undefined)
  const asked = new Set<string>([own])
  let verifications = 0
  for (const issuer of [...first, ...authority.issuers.values()]) {
    if (!certificate.issuer.equals(issuer.certificate.subject)) continue
    const crlIssuer = crlIssuerOf(issuer.certificate)
    if (asked.has(crlIssuer)) continue
    asked.add(crlIssuer)
    if (isSignedBy(certificate, issuer.certificate)) return issuer
    verifications++
    if (verifications % verificationsAtOnce === 0) await nextTurn()
  }
  return undefined
}
