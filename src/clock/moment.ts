/** RFC 3339, which allows a small t and z. Date.parse takes hour 24, too. */
const form = /^\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/

/** Milliseconds since the Unix epoch of a time in RFC 3339; undefined for any other text. */
export function readMoment(text: string): number | undefined {
  if (!form.test(text) || !isRealDate(text)) return undefined
  const moment = Date.parse(text)
  return Number.isNaN(moment) ? undefined : moment
}

/** Date.parse turns 30 February into 2 March. */
function isRealDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number)
  return day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** A time in RFC 3339, without fraction where that is zero. @param milliseconds since the Unix epoch */
export const showMoment = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('.000Z', 'Z')

/** A time rounded down to a second. @param milliseconds since the Unix epoch */
export const wholeSeconds = (milliseconds: number): number => Math.floor(milliseconds / 1000) * 1000
