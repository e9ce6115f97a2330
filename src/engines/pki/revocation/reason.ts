import { badRequest } from '../../../errors.ts'
import { crlReasons } from '../../../x509/extensions/reasoncode.ts'

/** What is revoked here stays so. */
const passing = ['certificateHold', 'removeFromCRL']
const lasting = Object.keys(crlReasons).filter((name) => !passing.includes(name))

/**
 * The number of a reason.
 * @param text its number or its name, whatever the case
 * @returns null where none is to be written: RFC 5280 would rather have no extension than `unspecified`
 * @throws ApiError 400 for an unknown reason, and for those of revocations that end
 */
export function reasonOf(text: string): number | null {
  const wanted = text.trim()
  if (wanted === '') return null
  const found = Object.entries(crlReasons).find(([name, number]) =>
    [name.toLowerCase(), String(number)].includes(wanted.toLowerCase()),
  )
  if (found === undefined) throw badRequest(`reason: none of ${lasting.join(', ')}, nor the number of one`)
  const [name, number] = found
  if (passing.includes(name)) throw badRequest(`reason: a revocation is for good, so that it cannot be ${name}`)
  return number === 0 ? null : number
}
