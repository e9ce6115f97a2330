import { nextTurn } from '../../../../after.ts'
import { badRequest } from '../../../../errors.ts'
import { isObject } from '../../../../field/object.ts'
import { convert, type Refuse } from '../../../../request/convert.ts'
import { type CrlEntry, writeCrlEntry } from '../../../../x509/crlentry.ts'
import { mostSerialBytes } from '../../../../x509/serial.ts'
import { isAbsent, readGivenExtensions } from './extensions.ts'

export const mostRevokedCerts = 250_000
const endOfTime = Date.UTC(10_000, 0)
/** Entries per turn of the event loop. */
const entriesInTurn = 2000

/**
 * Entries as a request has them: `{serial_number, revocation_time, extensions}` each.
 * @returns DER of each, in their order @throws ApiError 400 naming the entry
 */
export async function readRevokedCerts(given: unknown): Promise<readonly Buffer[]> {
  if (isAbsent(given)) return []
  if (!Array.isArray(given)) throw badRequest("'revoked_certs' field did not contain a list")
  if (given.length > mostRevokedCerts) {
    throw badRequest(`revoked_certs has ${given.length} entries; at most ${mostRevokedCerts} are signed at once`)
  }
  const places = new Map<string, number>()
  const entries: Buffer[] = []
  for (const [index, item] of given.entries()) {
    const entry = readEntry(item, index)
    const serial = entry.serial.toString('hex')
    const place = places.get(serial)
    if (place !== undefined)
      throw badRequest(`duplicate serial number: ${serial}, original entry ${place} and ${index}`)
    places.set(serial, index)
    entries.push(writeCrlEntry(entry))
    if (entries.length % entriesInTurn === 0) await nextTurn()
  }
  return entries
}

function readEntry(given: unknown, index: number): CrlEntry {
  const refusing =
    (field: string): Refuse =>
    (reason) => {
      throw badRequest(`failed parsing ${field} from entry ${index}: ${reason}`)
    }
  if (!isObject(given)) return refusing('revoked_certs')('expected a map')
  const { serial_number: serial, revocation_time: time, extensions } = given
  return {
    serial: readSerialNumber(serial, refusing('serial_number')),
    revokedAt: readRevocationTime(time, refusing('revocation_time')),
    extensions: readGivenExtensions(extensions, refusing('extensions')),
  }
}

/** Bytes in hexadecimal, with any of the usual separators or none. @returns the magnitude */
function readSerialNumber(given: unknown, refuse: Refuse): Buffer {
  if (isAbsent(given)) return refuse("missing 'serial_number' field")
  if (typeof given !== 'string') return refuse("'serial_number' field was not a string")
  const hex = given.replaceAll(/[:. -]/g, '')
  if (hex.length % 2 !== 0 || !/^[0-9A-Fa-f]+$/.test(hex)) return refuse("'serial_number' was not a hex number")
  const digits = hex.replace(/^(?:00)+(?=.)/, '')
  if (digits.length > 2 * mostSerialBytes) return refuse(`'serial_number' has more than ${mostSerialBytes} bytes`)
  return Buffer.from(digits, 'hex')
}

/** Seconds since 1970, or RFC 3339. @returns milliseconds since 1970 */
function readRevocationTime(given: unknown, refuse: Refuse): number {
  if (isAbsent(given)) return refuse("missing 'revocation_time' field")
  const time = convert('time', given, refuse) as number
  return time >= 0 && time < endOfTime ? time : refuse('the time is not between the years 1970 and 9999')
}
