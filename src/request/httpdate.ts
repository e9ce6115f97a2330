const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const month = months.join('|')
const clock = '([01]\\d|2[0-3]):([0-5]\\d):([0-5]\\d|60)'

/** The three forms that a recipient must read (RFC 9110 section 5.6.7); only the first is ever written. */
const imfFixdate = new RegExp(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\\d\\d) (${month}) (\\d{4}) ${clock} GMT$`)
const rfc850 = new RegExp(`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\\d\\d)-(${month})-(\\d\\d) ${clock} GMT$`)
const asctime = new RegExp(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (${month}) ([ \\d]\\d) ${clock} (\\d{4})$`)

/**
 * Reads an HTTP date.
 * @returns milliseconds since 1970, or undefined for any other text
 */
export function readHttpDate(text: string): number | undefined {
  const fixed = imfFixdate.exec(text)
  if (fixed) return moment(fixed[3], fixed[2], fixed[1], fixed.slice(4, 7))
  const obsolete = rfc850.exec(text)
  if (obsolete) return moment(fullYear(Number(obsolete[3])), obsolete[2], obsolete[1], obsolete.slice(4, 7))
  const c = asctime.exec(text)
  return c ? moment(c[6], c[1], c[2], c.slice(3, 6)) : undefined
}

/** A year of two digits: no date here is before 1970. */
const fullYear = (digits: number): number => (digits < 70 ? 2000 + digits : 1900 + digits)

function moment(
  year: string | number | undefined,
  name: string | undefined,
  day: string | undefined,
  time: readonly string[],
): number | undefined {
  const [hours = 0, minutes = 0, seconds = 0] = time.map(Number)
  const at = Date.UTC(Number(year), months.indexOf(name ?? ''), Number(day))
  // Date.UTC turns 30 February into 2 March.
  if (new Date(at).getUTCDate() !== Number(day)) return undefined
  return at + ((hours * 60 + minutes) * 60 + seconds) * 1000
}
