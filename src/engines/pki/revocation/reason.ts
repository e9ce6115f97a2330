import { badRequest } from '../../../errors.ts'
import { crlReasons } from '../../../x509/extensions/reasoncode.ts'

/** Reasons of revocations that can end; here every revocation is permanent. */
const passing = ['certificateHold', 'removeFromCRL']
const lasting = Object.keys(crlReasons).filter((name) => !passing.includes(name))

/**
 * @param text its number, or its name in any case
 * @returns null if no reason is to be written: RFC 5280 prefers no extension to `unspecified`
 * @throws ApiError 400 for an unknown reason, and for the reasons of revocations that can end
 */
export function reasonOf(text: string): number | null {
  const wanted = text.trim()
  if (wanted === '') return null
  const found = Object.entries(crlReasons).find(([name, number]) =>
    [name.toLowerCase(), String(number)].includes(wanted.toLowerCase()),
  )
  if (found === undefined) throw badRequest(`reason: must be one of ${lasting.join(', ')}, or the number of one`)
  const [name, number] = found
  if (passing.includes(name)) throw badRequest(`reason: a revocation is permanent, so its reason cannot be ${name}`)
  return number === 0 ? null : number
}
