import { writeNumber } from '../../crypto/der.ts'
import { toBytes } from '../../crypto/number.ts'
import { crlExtensionOids, type Extension } from '../extension.ts'

/** RFC 5280 section 5.2.3: up to 20 octets, of which the first bit is the sign. */
export const greatestCrlNumber = 2n ** 159n - 1n

/** CRL number (RFC 5280 section 5.2.3). Not critical. @throws RangeError below 0 and above `greatestCrlNumber` */
export const crlNumber = (number: number | bigint): Extension => ({
  oid: crlExtensionOids.crlNumber,
  critical: false,
  value: writeInteger(number),
})

/**
 * Delta CRL indicator (RFC 5280 section 5.2.4). Critical. @param base number of the complete list that the delta
 * extends
 */
export const deltaCrlIndicator = (base: number | bigint): Extension => ({
  oid: crlExtensionOids.deltaCrlIndicator,
  critical: true,
  value: writeInteger(base),
})

function writeInteger(number: number | bigint): Buffer {
  const value = BigInt(number)
  if (value < 0n || value > greatestCrlNumber)
    throw new RangeError('a CRL number is not negative and has at most 20 octets')
  return writeNumber(toBytes(value))
}
