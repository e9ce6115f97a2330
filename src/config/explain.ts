import type { TLocalizedValidationError } from 'typebox/error'
import { child, type Node } from './node.ts'

/**
 * Turns schema errors into one line per field: its path, its value, the allowed values.
 * @param root the schema
 * @param value the checked configuration
 * @param errors typebox's
 */
export function explain(root: Node, value: unknown, errors: readonly TLocalizedValidationError[]): string[] {
  const lines = new Map<string, string>()
  const say = (path: readonly string[], line: string) => {
    const at = path.join('.')
    if (!lines.has(at)) lines.set(at, at === '' ? line : `${at}: ${line}`)
  }
  for (const error of errors) {
    const path = error.instancePath.split('/').slice(1).map(unescapePointer)
    const nodes: (Node | undefined)[] = [root]
    for (const key of path) nodes.push(child(nodes.at(-1), key))
    if (error.keyword === 'boolean') say(path, unknownField(nodes.at(-2), path.at(-1) ?? ''))
    else if (error.keyword === 'required') {
      for (const key of error.params.requiredProperties) {
        const node = child(nodes.at(-1), key)
        say([...path, key], `is missing; it is ${node ? allowed(node) : 'needed'}`)
      }
    } else if (error.keyword !== 'additionalProperties') {
      const node = nodes.at(-1) ?? {}
      say(path, `${shown(node, at(value, path))} is not allowed; it is ${allowed(node)}`)
    }
  }
  return [...lines.values()]
}

/** A description of a field's allowed values. */
export function allowed(node: Node): string {
  if (node.description) return node.description
  if (node.anyOf) return node.anyOf.map(allowed).join(' or ')
  if (node.enum) return node.enum.length === 1 ? String(node.enum[0]) : `one of ${node.enum.join(', ')}`
  if (node.const !== undefined) return String(node.const)
  if (node.type === 'boolean') return 'true or false'
  if (node.type === 'integer') return `a whole number ${range(node.minimum, node.maximum)}`
  if (node.type === 'array') return `a list of ${node.minItems ?? 0} or more`
  if (node.properties) {
    const names = Object.keys(node.properties).join(', ')
    return node.maxProperties === 1 ? `exactly one of ${names}` : `a section with ${names || 'nothing'}`
  }
  return `a text of ${node.minLength ?? 0} to ${node.maxLength ?? 'any number of'} characters`
}

const range = (minimum = 0, maximum?: number): string =>
  maximum === undefined ? `from ${minimum} up` : `from ${minimum} to ${maximum}`

function unknownField(parent: Node | undefined, key: string): string {
  const names = Object.keys(parent?.properties ?? {})
  const near = names.find((name) => distance(name.toLowerCase(), key.toLowerCase()) <= 2)
  const hint = near ? `did you mean ${near}?` : `known here: ${names.join(', ')}`
  return `unknown field; ${hint}`
}

function shown(node: Node, value: unknown): string {
  if (node.secret) return 'the value (not shown)'
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value)
      ? `a list of ${value.length}`
      : `a section with ${Object.keys(value).join(', ') || 'nothing'}`
  }
  return JSON.stringify(value)
}

const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((here, key) => (here as Record<string, unknown> | undefined)?.[key], value)

const unescapePointer = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~')

/** Levenshtein's distance: the number of letters to add, remove or change. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const change = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(change, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
