import { within } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { writeOid } from '../../crypto/oid.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { reading } from '../malformed.ts'
import { readGeneralName, writeGeneralName } from './generalname.ts'

/** URIs of the OCSP responders for a certificate, and of its issuer's certificate (RFC 5280 section 4.2.2.1). */
export interface AuthorityInformationAccess {
  readonly ocsp: readonly string[]
  readonly caIssuers: readonly string[]
}

const methods = { ocsp: '1.3.6.1.5.5.7.48.1', caIssuers: '1.3.6.1.5.5.7.48.2' } as const

/** Not critical; the URIs of OCSP first. At least one URI in all. */
export const writeAuthorityInformationAccess = ({ ocsp, caIssuers }: AuthorityInformationAccess): Extension => ({
  oid: extensionOids.authorityInformationAccess,
  critical: false,
  value: write(
    asn1.sequence,
    ...ocsp.map((uri) => writeAccess(methods.ocsp, uri)),
    ...caIssuers.map((uri) => writeAccess(methods.caIssuers, uri)),
  ),
})

const writeAccess = (method: string, value: string): Buffer =>
  write(asn1.sequence, writeOid(method), writeGeneralName({ kind: 'uri', value }))

/** Other methods, and locations that are not URIs, are left out. @param value of the extension @throws Malformed */
export const readAuthorityInformationAccess = (value: Buffer): AuthorityInformationAccess =>
  reading('authorityInfoAccess', () =>
    within(value, asn1.sequence, (accesses) => {
      const found: { ocsp: string[]; caIssuers: string[] } = { ocsp: [], caIssuers: [] }
      do {
        const access = accesses.enter(asn1.sequence)
        const method = access.oid()
        const location = readGeneralName(access)
        access.end()
        if (location.kind !== 'uri') continue
        if (method === methods.ocsp) found.ocsp.push(location.value)
        if (method === methods.caIssuers) found.caIssuers.push(location.value)
      } while (accesses.more)
      return found
    }),
  )
