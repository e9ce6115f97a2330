import { matchesGlob } from '../glob.ts'
import type { Refusal } from '../refusal.ts'
import { foldCase } from './domains.ts'
import { isPlainText, shorten } from './text.ts'

const unprintable = 'an attribute of a subject must not contain control characters'

/** Checks a serial number of the subject. @param allowed values and globs of the role; an empty list allows no value */
export function refusalOfSerialNumber(serial: string, allowed: readonly string[]): Refusal | undefined {
  const text = `serial_number ${shorten(serial)} not allowed by this role`
  if (!isPlainText(serial)) return { text, rule: unprintable }
  if (allowed.some((glob) => matchesGlob(glob, serial))) return undefined
  return {
    text,
    rule: `${shorten(serial)} matches nothing in allowed_serial_numbers`,
    setting: 'allowed_serial_numbers',
  }
}

/** Checks a user ID of the subject; whole values are compared in any case. @param allowed as for serial numbers */
export function refusalOfUserId(userId: string, allowed: readonly string[]): Refusal | undefined {
  const text = `user_id ${shorten(userId)} is not allowed by this role`
  if (!isPlainText(userId)) return { text, rule: unprintable }
  const folded = foldCase(userId)
  if (allowed.some((glob) => foldCase(glob) === folded || matchesGlob(glob, userId))) return undefined
  return { text, rule: `${shorten(userId)} matches nothing in allowed_user_ids`, setting: 'allowed_user_ids' }
}
