import { Cursor } from '../../crypto/cursor.ts'
import { asn1, write } from '../../crypto/der.ts'
import { crlExtensionOids, type Extension } from '../extension.ts'
import { Malformed, reading } from '../malformed.ts'

/** CRLReason (RFC 5280 section 5.3.1): the numbers of the reasons by their names. There is no 7. */
export const crlReasons = {
  unspecified: 0,
  keyCompromise: 1,
  cACompromise: 2,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
  certificateHold: 6,
  removeFromCRL: 8,
  privilegeWithdrawn: 9,
  aACompromise: 10,
} as const

const known: ReadonlySet<number> = new Set(Object.values(crlReasons))

/** Whether a number is that of a reason. */
export const isReason = (number: number | undefined): boolean => number !== undefined && known.has(number)

/** Reason code of an entry. Not critical. @param reason of `crlReasons`; `unspecified` is better left out */
export function reasonCode(reason: number): Extension {
  if (!isReason(reason)) throw new RangeError('unknown reason')
  return { oid: crlExtensionOids.reasonCode, critical: false, value: write(asn1.enumerated, Buffer.from([reason])) }
}

/** @param value of the extension @throws Malformed */
export const readReasonCode = (value: Buffer): number =>
  reading('reasonCode', () => {
    const cursor = new Cursor(value)
    const contents = cursor.contents(asn1.enumerated)
    cursor.end()
    const [reason] = contents
    if (reason === undefined || contents.length !== 1 || !isReason(reason)) throw new Malformed('unknown reason')
    return reason
  })
