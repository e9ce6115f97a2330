import { hash } from 'node:crypto'
import { entrySerials } from '../../../x509/crlentry.ts'

export const fingerprintBytes = 8

/** The first eight bytes of SHA-256 over a serial number. @param serial magnitude without leading zeros */
export const fingerprintOf = (serial: Uint8Array): Buffer =>
  hash('sha256', serial, 'buffer').subarray(0, fingerprintBytes)

/** Of all entries, in their order. @param entries DER, side by side */
export function fingerprintsOf(entries: Buffer): Buffer {
  const parts: Buffer[] = []
  for (const { serial } of entrySerials(entries)) parts.push(fingerprintOf(serial))
  return Buffer.concat(parts)
}

/** The magnitude of a serial number that is given in hexadecimal, without leading zeros. */
export function magnitudeOf(serial: string): Buffer {
  const digits = serial.replace(/^(?:00)+(?=..)/, '')
  return Buffer.from(digits, 'hex')
}
