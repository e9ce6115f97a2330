import { readMoment } from '../clock/moment.ts'
import { readSeconds } from '../duration.ts'
import { isObject } from '../field/object.ts'
import type { Lenient } from '../field.ts'
import { goFalse, goTrue } from './input.ts'

/** Ends the conversion with a reason, which never repeats the value: it may be a secret. */
export type Refuse = (reason: string) => never

/**
 * Converts one value, in any spelling of Vault's clients (the reference's weak decoding), to the type of a field.
 * @param value as parsed from JSON, a form or a query; never null
 */
export function convert(lenient: Lenient, value: unknown, refuse: Refuse): unknown {
  switch (lenient) {
    case 'string':
      return toText(value, refuse)
    case 'integer':
      return toInteger(value, refuse)
    case 'boolean':
      return toBoolean(value, refuse)
    case 'duration':
      return toSeconds(value, refuse)
    case 'time':
      return toMilliseconds(value, refuse)
    case 'list':
      return (Array.isArray(value) ? value : [value]).map((item) => toText(item, refuse))
    case 'commaList':
      return toCommaList(value, refuse)
    case 'commaText':
      return toCommaList(toText(value, refuse), refuse)
    case 'map':
      return toMap(value, refuse)
    case 'raw':
      return value
  }
}

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`

function toText(value: unknown, refuse: Refuse): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? '1' : '0'
  // A number that a double would round is already text (numbers.ts).
  return typeof value === 'number' ? String(value) : refuse(`expected a string, got ${kindOf(value)}`)
}

/** Go's base 0 without underscores. */
const integerText = /^[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/
const fraction = /^-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$/
const withoutFraction = 'expected an integer without fraction or exponent'

function toInteger(value: unknown, refuse: Refuse): number {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value === '') return 0
  const number = typeof value === 'string' && integerText.test(value) ? goInteger(value) : value
  if (typeof number === 'string' && fraction.test(number)) return refuse(withoutFraction)
  if (typeof number !== 'number') return refuse(`expected an integer, got ${kindOf(value)}`)
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER) return refuse('the number is out of range')
  if (!Number.isInteger(number)) return refuse(withoutFraction)
  return number === 0 ? 0 : number
}

/** A sign, a prefix, 64 binary digits and some leading zeros. */
const longestInteger = 80

function goInteger(text: string): number {
  const negative = text.startsWith('-')
  // Longer than any number of 64 bits; BigInt's time grows faster than the length.
  if (text.length > longestInteger) return Number.POSITIVE_INFINITY
  const digits = text.replace(/^[+-]/, '').replace(/^0(?=[0-7])/, '0o')
  // Through BigInt, because Number('9007199254740993') rounds silently.
  const magnitude = BigInt(digits)
  if (magnitude > BigInt(Number.MAX_SAFE_INTEGER)) return Number.POSITIVE_INFINITY
  return negative ? -Number(magnitude) : Number(magnitude)
}

/** The boolean for which a value of JSON stands; undefined for a value that stands for none. */
export function readBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') return value !== 0
  if (typeof value !== 'string') return undefined
  if (value === '' || goFalse.has(value)) return false
  return goTrue.has(value) || undefined
}

const toBoolean = (value: unknown, refuse: Refuse): boolean =>
  readBoolean(value) ??
  refuse(
    typeof value === 'string'
      ? 'expected a boolean (true or false), got other text'
      : `expected a boolean, got ${kindOf(value)}`,
  )

function toSeconds(value: unknown, refuse: Refuse): number {
  if (typeof value === 'number' || typeof value === 'string') return readSeconds(value, refuse)
  return refuse(`expected a duration, got ${kindOf(value)}`)
}

function toMilliseconds(value: unknown, refuse: Refuse): number {
  const seconds = typeof value === 'string' && /^[0-9]{1,15}$/.test(value) ? Number(value) : value
  const moment =
    typeof seconds === 'number' ? seconds * 1000 : typeof seconds === 'string' ? readMoment(seconds) : undefined
  if (moment === undefined || !Number.isSafeInteger(moment)) {
    return refuse('expected a time in RFC 3339 form, or seconds since 1970')
  }
  return moment
}

/** As many as a list in JSON may have (json/measure.ts). */
const mostEntries = 10_000

function toCommaList(value: unknown, refuse: Refuse): string[] {
  if (Array.isArray(value)) return value.map((item) => toText(item, refuse).trim())
  const text = toText(value, refuse)
  if (text.trim() === '') return []
  const entries = text.split(',', mostEntries + 1)
  if (entries.length > mostEntries) return refuse(`more than ${mostEntries} entries`)
  return entries.map((item) => item.trim())
}

/** The map has no prototype: a key named `__proto__` is a key like any other. */
function toMap(value: unknown, refuse: Refuse): Readonly<Record<string, string>> {
  const map: Record<string, string> = Object.create(null)
  if (value === '') return map
  if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) map[key.toWellFormed()] = toText(item ?? '', refuse)
    return map
  }
  for (const item of Array.isArray(value) ? value : [value]) {
    const pair = toText(item, refuse)
    const mark = pair.indexOf('=')
    if (mark < 1) return refuse('expected an object, or a list of "key=value"')
    map[pair.slice(0, mark)] = pair.slice(mark + 1)
  }
  return map
}
