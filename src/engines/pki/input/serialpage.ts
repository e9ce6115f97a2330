import { badRequest } from '../../../errors.ts'
import { parseSerial, withColons } from '../../../x509/serial.ts'

/** Pages of lists in the order of serial numbers. */

/** The most entries in one answer: a worker serves no other request while it writes and audits one. */
export const mostSerials = 10_000

/** @param serial in hexadecimal */
export const shownSerial = (serial: string): string => withColons(Buffer.from(serial, 'hex'))

/** The serial, in hexadecimal, after which a page begins. @throws ApiError 400 */
export function cursorOf(after: string | undefined): { after?: string } {
  if (!after) return {}
  const serial = parseSerial(after)
  if (serial === undefined) throw badRequest('after: a serial number is hexadecimal, its bytes separated by ":" or "-"')
  return { after: serial.toString('hex') }
}

/**
 * The page to read: one more entry than the answer may have, to see whether the list continues. @throws ApiError 400
 */
export function serialPage({
  after,
  limit = 0,
}: {
  readonly after?: string | undefined
  readonly limit?: number | undefined
}): { readonly after?: string; readonly limit: number } {
  return { ...cursorOf(after), limit: limit > 0 && limit <= mostSerials ? limit : mostSerials + 1 }
}

/** Tells how to continue a list. @param keys of the answer */
export function warnOfMore(keys: readonly string[], warn: (text: string) => void): void {
  warn(`There are more than these ${keys.length} certificates: continue with after=${keys.at(-1)}`)
}
