import { Cursor } from '../../src/crypto/cursor.ts'
import { toNumber } from '../../src/crypto/number.ts'

/** The number of a CRL number or a delta CRL indicator. @param value of the extension @throws NotDer */
export function readCrlNumber(value: Buffer): bigint {
  const cursor = new Cursor(value)
  const integer = cursor.integer()
  cursor.end()
  return toNumber(integer)
}
