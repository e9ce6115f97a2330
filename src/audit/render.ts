import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** How a device shows a string, or a body of bytes: as JSON text, quotes included. */
export type Quote = (text: string | Uint8Array) => string

/** In clear, for devices that log raw. */
export const plainly: Quote = (text) =>
  JSON.stringify(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'))

/** HMACs under the key of one device. The reference's form: `hmac-sha256:` and lower-case hexadecimal. */
export class Hasher {
  // As a KeyObject an HMAC costs 2 µs instead of 13, and nothing prints it.
  readonly #key: KeyObject

  constructor(key: Uint8Array) {
    this.#key = createSecretKey(key)
  }

  hash(text: string | Uint8Array): string {
    return `hmac-sha256:${createHmac('sha256', this.#key).update(text).digest('hex')}`
  }
}

/**
 * JSON text of a value in which every string, at any depth, went through `quote`; names, numbers, booleans and null
 * stay. Built in one pass: nothing is copied first.
 */
export function valueText(value: unknown, quote: Quote): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map((item) => valueText(item, quote)).join()}]`
  if (value instanceof Uint8Array) return quote(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const { toJSON } = value as { toJSON?: unknown }
  return typeof toJSON === 'function' ? valueText(toJSON.call(value), quote) : objectText(value, quote)
}

/**
 * JSON text of an object.
 * @param clear names whose strings, and lists of strings, are shown as they are
 */
export function objectText(value: object, quote: Quote, clear?: ReadonlySet<string>): string {
  let members = ''
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const text = clear?.has(name) ? clearText(member, quote) : valueText(member, quote)
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${text}`
  }
  return `{${members}}`
}

function clearText(value: unknown, quote: Quote): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item) => clearText(item, quote)).join()}]`
  return valueText(value, quote)
}

/** `"name":value`, or nothing where the value is empty: records leave out what says nothing. */
export function member(name: string, value: unknown): string {
  return empty(value) ? '' : `"${name}":${JSON.stringify(value)}`
}

/** The members that are there, as one object; nothing when none is. */
export const joined = (members: readonly string[]): string => members.filter((text) => text !== '').join()

function empty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return typeof value === 'object' && Object.keys(value).length === 0
}
