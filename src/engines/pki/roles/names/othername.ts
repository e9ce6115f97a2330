import { isOid } from '../../../../crypto/oid.ts'
import type { OtherName } from '../decision.ts'
import { matchesGlob } from '../glob.ts'
import type { Refusal } from '../refusal.ts'
import { shorten } from './text.ts'

/**
 * Reads `OID;UTF8:value`.
 * @returns the fault in the reference's words when the text is invalid
 */
export function readOtherName(text: string): OtherName | string {
  const shown = JSON.stringify(text)
  const semicolon = text.indexOf(';')
  if (semicolon < 0) return `expected a semicolon in other SAN ${shown}`
  const colon = text.indexOf(':', semicolon)
  if (colon < 0) return `expected a colon in other SAN ${shown}`
  if (!/^utf-?8$/i.test(text.slice(semicolon + 1, colon))) return `${onlyUtf8} ${shown}`
  const oid = text.slice(0, semicolon).trim()
  if (!isOid(oid)) return `expected an OID in other SAN ${shown}`
  return { oid, value: text.slice(colon + 1) }
}

export const onlyUtf8 = 'only utf8 other SANs are supported; found non-supported type in other SAN'

/** Other names for an explanation. */
export const showOtherName = (other: OtherName | string): string =>
  shorten(typeof other === 'string' ? other : `${other.oid};UTF8:${other.value}`)

/** The values that a role allows: globs by OID, or any. */
export type AllowedOthers = ReadonlyMap<string, readonly string[]> | 'any'

/** @param entries of the role; a single `*` allows any */
export function readAllowedOthers(entries: readonly string[]): AllowedOthers {
  if (entries.length === 1 && entries[0] === '*') return 'any'
  const globs = new Map<string, string[]>()
  for (const entry of entries.map(readOtherName)) {
    if (typeof entry === 'object') globs.set(entry.oid, [...(globs.get(entry.oid) ?? []), entry.value])
  }
  return globs
}

/** @param other a string is the reason why it cannot be read */
export function refusalOfOtherName(other: OtherName | string, allowed: AllowedOthers): Refusal | undefined {
  if (typeof other === 'string') {
    return {
      text: `could not parse requested other SAN: ${shorten(other)}`,
      rule: 'an other name must have the form OID;UTF8:value',
    }
  }
  const { oid, value } = other
  if (!value.isWellFormed()) {
    return { text: 'could not parse requested other SAN: not Unicode', rule: 'a UTF8String must be Unicode text' }
  }
  if (allowed === 'any') return undefined
  const globs = allowed.get(oid)
  if (globs === undefined) {
    return {
      text: `other SAN OID ${oid} not allowed by this role`,
      rule: 'no entry of allowed_other_sans has this OID',
      setting: 'allowed_other_sans',
    }
  }
  if (globs.some((glob) => matchesGlob(glob, value))) return undefined
  return {
    text: `other SAN ${shorten(value)} not allowed for OID ${oid} by this role`,
    rule: 'the value matches no entry of allowed_other_sans with this OID',
    setting: 'allowed_other_sans',
  }
}
