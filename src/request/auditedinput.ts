import { isObject } from '../field/object.ts'
import type { Lenient } from '../field.ts'
import type { Input } from './input.ts'
import type { Match } from './match.ts'
import type { Field } from './parse.ts'

/** Fields whose numbers stay numbers. A `raw` field is read by its route, and holds settings that may be numbers. */
const numeric: ReadonlySet<Lenient | undefined> = new Set(['integer', 'boolean', 'duration', 'time', 'raw'])

type Known = ReadonlyMap<string, Field>

/**
 * Parameters as audit lines show them. Lines hash texts and show numbers: a number that is read as a text is given as
 * that text, since a PIN or a plaintext may be made of digits. So is one under a name that the route does not have.
 */
export function auditedInput(input: Input, { endpoint: { route, fields } }: Match): Input {
  const items = route.items === undefined ? undefined : fields.known.get(route.items)
  return replaced(input, (value, name) => {
    const field = fields.known.get(name)
    if (field !== undefined && field === items) return itemsShown(value, fields.known)
    return numeric.has(field?.lenient) ? value : textsOf(value)
  })
}

/** Items have the fields of the request. */
function itemsShown(items: unknown, known: Known): unknown {
  if (!Array.isArray(items)) return textsOf(items)
  return mapped(items, (item) =>
    isObject(item)
      ? replaced(item, (value, name) => (numeric.has(known.get(name)?.lenient) ? value : textsOf(value)))
      : textsOf(item),
  )
}

/** The value with its numbers as texts, at any depth. */
function textsOf(value: unknown): unknown {
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value)) return mapped(value, textsOf)
  return isObject(value) ? replaced(value, textsOf) : value
}

/** Most requests have no such number: they are not copied. */
function mapped(values: readonly unknown[], show: (value: unknown) => unknown): readonly unknown[] {
  let copy: unknown[] | undefined
  for (const [index, value] of values.entries()) {
    const shown = show(value)
    if (shown === value) continue
    copy ??= [...values]
    copy[index] = shown
  }
  return copy ?? values
}

function replaced(values: Input, show: (value: unknown, name: string) => unknown): Input {
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(values)) {
    const shown = show(values[name], name)
    if (shown === values[name]) continue
    copy ??= Object.assign(Object.create(null), values) as Record<string, unknown>
    copy[name] = shown
  }
  return copy ?? values
}
