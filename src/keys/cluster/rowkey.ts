/** Of the 32 bytes: enough that nobody finds another key that shows the same, few enough to be typed in. */
const shownBytes = 16

/** The check value of a row-MAC key as operators keep it: 32 hexadecimal digits in groups of four. */
export const shownRowKey = (checkValue: Buffer): string =>
  checkValue.toString('hex', 0, shownBytes).replace(/(.{4})(?=.)/g, '$1 ')

/** @param shown as shownRowKey gives it; blanks, `:` and capitals do not matter */
export const isRowKey = (shown: string, checkValue: Buffer): boolean =>
  digitsOf(shown) === checkValue.toString('hex', 0, shownBytes)

/** @throws Error for a text that cannot be a check value */
export function requireRowKey(shown: string): void {
  if (digitsOf(shown).length === 2 * shownBytes && /^[0-9a-f]+$/.test(digitsOf(shown))) return
  throw new Error('the check value of the row key is 32 hexadecimal digits, as kek status shows it')
}

const digitsOf = (shown: string): string => shown.replace(/[\s:]/g, '').toLowerCase()
