import { isObject } from '../../field/object.ts'

/** Reads a value like the field that takes it; undefined when the field cannot read it. */
export type Read = (value: unknown) => unknown

/**
 * Whether a rule that allows only these values allows `value`: as the field reads it, it must be one of them. Every
 * element of a list must be, unless the rule names the whole list.
 * @param values of the rule; an empty list means any value. Text may begin and end with `*`
 */
export function allows(values: readonly unknown[], value: unknown, read: Read): boolean {
  if (values.length === 0) return true
  const taken = read(value)
  if (taken === undefined) return false
  const named = (candidate: unknown): boolean =>
    values.some((rule) => covers(rule, candidate) || keyOf(read(rule)) === keyOf(candidate))
  if (named(taken)) return true
  return Array.isArray(taken) && taken.length > 0 && taken.every(named)
}

/**
 * Whether a rule that denies these values denies `value`: as sent or as the field reads it, whole or any element, in
 * any case. A value that some engine could read as a denied one must not pass.
 */
export function denies(values: readonly unknown[], value: unknown, read: Read): boolean {
  if (values.length === 0) return true
  const seen = [...formsOf(value), ...formsOf(read(value))].map(folded)
  return values.some((given) => {
    const rule = folded(given)
    const taken = keyOf(folded(read(given)))
    return seen.some((form) => covers(rule, form) || keyOf(form) === taken)
  })
}

/** A value and, if it is a list, everything in it. */
function formsOf(value: unknown): unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? [value, ...value.flatMap(formsOf)] : [value]
}

function folded(value: unknown): unknown {
  const text = textOf(value)
  return text === undefined ? value : text.trim().toLowerCase()
}

function covers(rule: unknown, value: unknown): boolean {
  const text = textOf(value)
  if (typeof rule !== 'string' || text === undefined) return keyOf(rule) === keyOf(value)
  return globbed(rule, text)
}

/** `*` at the start or the end stands for any text. */
function globbed(glob: string, text: string): boolean {
  const open = glob.startsWith('*')
  const bare = glob.slice(open ? 1 : 0)
  if (!bare.endsWith('*')) return open ? text.endsWith(bare) : text === bare
  return open ? text.includes(bare.slice(0, -1)) : text.startsWith(bare.slice(0, -1))
}

/** The text of a string, a number or a boolean: the JSON type depends on the client. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string'
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined

/** Equal for equal values; undefined for an absent one. A list or an object never has the key of a text. */
function keyOf(value: unknown): string | undefined {
  const text = textOf(value)
  if (text !== undefined) return `=${text}`
  return value === undefined ? undefined : JSON.stringify(value, inOrder)
}

const inOrder = (_name: string, value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))) : value
