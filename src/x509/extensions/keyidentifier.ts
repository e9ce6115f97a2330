import { Cursor, within } from '../../crypto/cursor.ts'
import { asn1, context, contextAround, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'
import { type GeneralName, readGeneralNames } from './generalname.ts'

/** Key identifiers: of the subject (RFC 5280 section 4.2.1.2) and of its issuer (4.2.1.1). Neither is critical. */

export const writeSubjectKeyIdentifier = (identifier: Uint8Array): Extension => ({
  oid: extensionOids.subjectKeyIdentifier,
  critical: false,
  value: write(asn1.octetString, identifier),
})

/** @param value of the extension @throws Malformed */
export const readSubjectKeyIdentifier = (value: Buffer): Buffer =>
  reading('subjectKeyIdentifier', () => {
    const cursor = new Cursor(value)
    const identifier = cursor.contents(asn1.octetString)
    cursor.end()
    if (identifier.length === 0) throw new Malformed('it is empty')
    return identifier
  })

export interface AuthorityKeyIdentifier {
  readonly keyIdentifier?: Buffer | undefined
  readonly issuer?: readonly GeneralName[] | undefined
  /** Magnitude. */
  readonly serial?: Buffer | undefined
}

/** The key identifier alone, as in every certificate issued here. */
export const writeAuthorityKeyIdentifier = (identifier: Uint8Array): Extension => ({
  oid: extensionOids.authorityKeyIdentifier,
  critical: false,
  value: write(asn1.sequence, write(context(0), identifier)),
})

/** @param value of the extension @throws Malformed */
export const readAuthorityKeyIdentifier = (value: Buffer): AuthorityKeyIdentifier =>
  reading('authorityKeyIdentifier', () =>
    within(value, asn1.sequence, (parts) => {
      const keyIdentifier = parts.tag === context(0) ? parts.contents() : undefined
      const issuer = parts.tag === contextAround(1) ? readGeneralNames(parts.enter(contextAround(1))) : undefined
      const serial = parts.tag === context(2) ? parts.contents() : undefined
      if ((issuer === undefined) !== (serial === undefined)) throw new Malformed('issuer and serial number go together')
      return { keyIdentifier, issuer, serial }
    }),
  )
