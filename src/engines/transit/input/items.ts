import { badRequest } from '../../../errors.ts'
import { isObject } from '../../../field/object.ts'
import { readBoolean } from '../../../request/convert.ts'
import type { Input } from '../../../request/input.ts'
import { ignoredWarning, mostShownNames, shownName } from '../../../request/names/ignored.ts'

/** The JSON types of an item's fields; `text` also accepts a number, and `integerText` a number in a string. */
interface Kinds {
  string: string
  text: string
  integer: number
  integerText: number
  boolean: boolean
}
export type Shape = Readonly<Record<string, keyof Kinds>>
export type Item<S extends Shape> = { readonly [K in keyof S]?: Kinds[S[K]] | undefined }

/** The reading of one operation's inputs. */
export interface Reading<S extends Shape> {
  readonly shape: S
  /** Older names of fields, as in the request itself. */
  readonly aliases?: { readonly [K in keyof S]?: string }
  /** Fields of the request that are defaults for its items. */
  readonly shared: readonly (keyof S & string)[]
  /** The field that every input must have, and the refusal when it is missing. */
  readonly required?: {
    readonly field: keyof S & string
    readonly missing: string
    /** Whether a batch is read although an item lacks it; the operation then refuses that item. */
    readonly failsItem?: true
  }
  /** A field that all items of a batch must have if one has it. */
  readonly together?: keyof S & string
}

/** The most items of one batch. */
export const mostBatchItems = 100_000

/** The inputs of an operation: the single one of the request itself, or the items of its batch. */
export interface Inputs<I> {
  readonly batch: boolean
  readonly items: readonly I[]
}

/** A call with an input of its own or a batch. */
interface InputCall<S extends Shape> {
  readonly body: Item<S> & { readonly batch_input?: unknown }
  warn(text: string): void
}

/**
 * Reads batch_input if present (the request's own input is then ignored), else the request itself. One warning names
 * the members that items have and no field reads.
 * @throws ApiError 400 for malformed input; a wrong value fails only its item, later
 */
export function readInputs<S extends Shape>(call: InputCall<S>, reading: Reading<S>): Inputs<Item<S>> {
  const { body } = call
  const { shared, required, together } = reading
  if (body.batch_input === undefined) {
    if (required && body[required.field] === undefined) throw badRequest(required.missing)
    return { batch: false, items: [body] }
  }
  const defaults = Object.fromEntries(shared.map((name) => [name, body[name]]))
  const ignored = new Set<string>()
  const items = parseItems(body.batch_input, reading, defaults, ignored)
  if (ignored.size > 0) call.warn(ignoredWarning([...ignored], ' of batch_input'))
  if (together !== undefined) checkTogether(items, together)
  return { batch: true, items }
}

/** @throws ApiError 400 when some items have the field and others do not */
function checkTogether<S extends Shape>(items: readonly Item<S>[], field: keyof S & string): void {
  const having = items.filter((item) => item[field]).length
  if (having !== 0 && having !== items.length) {
    throw badRequest(`${field} should be set either in all the request blocks or in none`)
  }
}

const faultsShown = 20

/**
 * @param ignored filled with names that no field has
 * @throws ApiError 400 with the reference's text for each fault, one per line
 */
function parseItems<S extends Shape>(
  raw: unknown,
  { shape, aliases = {}, required }: Reading<S>,
  defaults: Readonly<Record<string, unknown>>,
  ignored: Set<string>,
): Item<S>[] {
  if (!Array.isArray(raw)) {
    throw badRequest(`failed to parse batch input: source data must be an array or slice, got ${kindOf(raw)}`)
  }
  if (raw.length === 0) throw badRequest('missing batch input to process')
  const fields = Object.entries(shape)
  const faults: string[] = []
  const items = raw.map((source: unknown, index) => {
    if (!isObject(source)) {
      faults.push(`[${index}] expected a map, got '${kindOf(source)}'`)
      return {}
    }
    const item: Record<string, unknown> = { ...defaults }
    let known = 0
    for (const [name, kind] of fields) {
      const alias: string | undefined = aliases[name]
      const sent = source[name]
      const older = alias === undefined ? undefined : source[alias]
      if (sent !== undefined) known++
      if (older !== undefined) known++
      const value = sent ?? older
      if (value === undefined || value === null) {
        if (name === required?.field && !required.failsItem) faults.push(`'[${index}].${name}' ${required.missing}`)
        continue
      }
      item[name] = convert(kind, value)
      if (item[name] === undefined) {
        faults.push(`'[${index}].${name}' expected type '${goName[kind]}', got unconvertible type '${kindOf(value)}'`)
      }
    }
    // Counted first: hardly any item has another member.
    if (ignored.size < mostShownNames && known < membersOf(source)) noteIgnored(ignored, source, shape, aliases)
    return item
  })
  if (faults.length > 0) throw badRequest(`failed to parse batch input: ${shown(faults)}`)
  return items as Item<S>[]
}

function membersOf(source: Input): number {
  let count = 0
  for (const _name in source) count++
  return count
}

/** Adds the names that no field has, as they are shown, and no more of them. */
function noteIgnored(
  ignored: Set<string>,
  source: Input,
  shape: Shape,
  aliases: Readonly<Record<string, unknown>>,
): void {
  const older = Object.values(aliases)
  for (const name in source) {
    if (ignored.size === mostShownNames) return
    if (!Object.hasOwn(shape, name) && !older.includes(name)) ignored.add(shownName(name))
  }
}

const goName = { string: 'string', text: 'string', integer: 'int', integerText: 'int', boolean: 'bool' }

/** Without leading zeros, which a policy would read as octal. */
const decimal = /^-?(?:0|[1-9]\d*)$/

/** The value converted to the kind; undefined for a value of another kind. */
function convert(kind: keyof Kinds, value: unknown): unknown {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? value : undefined
    case 'text':
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
    case 'integer':
      return Number.isSafeInteger(value) ? value : undefined
    case 'integerText':
      return convert('integer', typeof value === 'string' && decimal.test(value) ? Number(value) : value)
    case 'boolean':
      return readBoolean(value)
  }
}

/** Go's name for the type of a JSON value. */
function kindOf(value: unknown): string {
  if (value === null) return 'nil'
  if (Array.isArray(value)) return '[]interface {}'
  if (typeof value === 'number') return 'json.Number'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'string' ? 'string' : 'map[string]interface {}'
}

/** A batch can have more faults than anybody would read. */
const shown = (faults: readonly string[]): string =>
  faults.length <= faultsShown
    ? faults.join('\n')
    : `${faults.slice(0, faultsShown).join('\n')}\nand ${faults.length - faultsShown} more`
