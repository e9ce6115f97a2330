import { parse } from 'yaml'
import { isObject } from '../field/object.ts'
import type { Node } from './node.ts'

/**
 * YAML (JSON too) whose scalars all stay text: the schema decides their types. So a serial number keeps its leading
 * zeros, `1.2` is a version and not a number, and an environment variable is read by the same rules as the file.
 * @throws Error of the yaml package with line and column
 */
export const parseText = (text: string): unknown => parse(text, { schema: 'failsafe', logLevel: 'error' }) ?? {}

/** Converts texts to the types of the schema; a text that does not fit stays, and the check refuses it. */
export function typed(node: Node | undefined, value: unknown): unknown {
  if (node === undefined) return value
  if (node.properties) {
    if (value === '') return {}
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, typed(node.properties?.[key], part)]))
  }
  if (node.items) return Array.isArray(value) ? value.map((part) => typed(node.items, part)) : value
  if (typeof value !== 'string') return value
  if (node.anyOf) return node.anyOf.map((option) => typed(option, value)).find((one) => one !== value) ?? value
  if (node.type === 'integer' && /^-?\d{1,15}$/.test(value)) return Number(value)
  if (node.type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}
