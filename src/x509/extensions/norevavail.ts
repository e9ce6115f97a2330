import { asn1, write } from '../../crypto/der.ts'
import { type Extension, extensionOids } from '../extension.ts'
import { Malformed } from '../malformed.ts'

const value = write(asn1.null)

/** No revocation information will ever be published for this certificate (RFC 9608). Not critical. */
export const noRevAvail: Extension = { oid: extensionOids.noRevAvail, critical: false, value }

/** Only its presence has a meaning. @throws Malformed for anything but a NULL */
export function readNoRevAvail(contents: Buffer): void {
  if (!contents.equals(value)) throw new Malformed('noRevAvail: it is not a NULL')
}
