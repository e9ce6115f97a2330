import { hash } from 'node:crypto'
import { withCredentialsShown } from '../log/scrub.ts'

/** JSON text of a string; most need no escaping, and a regular expression finds that out faster than JSON.stringify. */
export const quoted = (text: string): string => (/^[ !#-[\]-~]*$/.test(text) ? `"${text}"` : JSON.stringify(text))

/** Shows a string, or a body of bytes, as JSON text with its quotes. */
export type Quote = (text: string | Uint8Array) => string

/** In clear, for devices that log raw. */
export const quoteRaw: Quote = (text) => quoted(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'))

const blockBytes = 64
const digestBytes = 32
/** Longer texts are rare, and get a buffer of their own. */
const usualBytes = 8192
/** In UTF-8, of one unit in UTF-16. */
const mostBytes = 3
/** Buffer's own fill looks for encodings first. */
const wipe = Uint8Array.prototype.fill

/**
 * HMACs under the key of one device, in Vault's form: `hmac-sha256:` and lower-case hexadecimal. Made of two one-shot
 * hashes (RFC 2104) over buffers that are reused: half the cost of node:crypto's Hmac objects, and every request pays
 * for several.
 */
export class Hasher {
  /** Key ⊕ ipad, then the text. */
  readonly #inner: Buffer
  /** Key ⊕ opad, then the inner hash. */
  readonly #outer: Buffer

  /** @param key 64 bytes at most: longer ones would be hashed first */
  constructor(key: Uint8Array) {
    if (key.length > blockBytes) throw new Error('the key of an audit device is longer than a block')
    const block = Buffer.concat([key], blockBytes)
    this.#inner = Buffer.concat([block.map((byte) => byte ^ 0x36)], blockBytes + usualBytes)
    this.#outer = Buffer.concat([block.map((byte) => byte ^ 0x5c)], blockBytes + digestBytes)
    block.fill(0)
  }

  hash(text: string | Uint8Array): string {
    const most = typeof text === 'string' ? mostBytes * text.length : text.length
    const room = most <= usualBytes ? this.#inner : this.#roomFor(Buffer.byteLength(text))
    const end = blockBytes + put(room, text, blockBytes)
    this.#outer.write(hash('sha256', room.subarray(0, end), 'binary'), blockBytes, 'latin1')
    // The text may be a secret.
    wipe.call(room, 0, blockBytes, end)
    return `hmac-sha256:${hash('sha256', this.#outer, 'hex')}`
  }

  /** For a longer text. */
  #roomFor(bytes: number): Buffer {
    const room = Buffer.allocUnsafeSlow(blockBytes + bytes)
    this.#inner.copy(room, 0, 0, blockBytes)
    return room
  }
}

/** @returns the number of bytes */
function put(room: Buffer, text: string | Uint8Array, at: number): number {
  if (typeof text === 'string') return room.write(text, at)
  room.set(text, at)
  return text.length
}

/** Shorter names hold no credential. */
const shortestCredential = 12

/** Names come from callers too: a credential among them is shown like any other string. */
export const nameText = (name: string, quote: Quote): string =>
  quoted(name.length < shortestCredential ? name : withCredentialsShown(name, (found) => quote(found).slice(1, -1)))

/**
 * JSON text of a value in which every string, at any depth, went through `quote`; names without credentials, numbers,
 * booleans and null stay. Built in one pass: nothing is copied first.
 */
function valueText(value: unknown, quote: Quote): string {
  if (typeof value === 'string') return quote(value)
  if (Number.isFinite(value)) return String(value)
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
    members += `${members === '' ? '' : ','}${nameText(name, quote)}:${text}`
  }
  return `{${members}}`
}

function clearText(value: unknown, quote: Quote): string {
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map((item) => clearText(item, quote)).join()}]`
  return valueText(value, quote)
}

/** `"name":value`, or '' for an empty value: records leave those out. */
export function member(name: string, value: unknown): string {
  if (empty(value)) return ''
  return `"${name}":${typeof value === 'string' ? quoted(value) : JSON.stringify(value)}`
}

/** The non-empty members, joined by commas. */
export function joined(members: readonly string[]): string {
  let text = ''
  for (const one of members) if (one !== '') text += text === '' ? one : `,${one}`
  return text
}

function empty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return typeof value === 'object' && Object.keys(value).length === 0
}
