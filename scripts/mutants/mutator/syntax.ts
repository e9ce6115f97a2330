import type { parseAst } from 'vitest/node'

type Program = ReturnType<typeof parseAst>
type Statement = Program['body'][number]
type Of<T, K extends string> = Extract<T, { readonly type: K }>
export type Expression = Of<Statement, 'ExpressionStatement'>['expression']

/** Statements and expressions, told apart by `type` (ESTree). */
export type Syntax = Statement | Expression

/** Any part of a syntax tree. */
export interface Part {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** TypeScript's wrappers of an expression; every other TS node is a type. */
const wrappers: ReadonlySet<string> = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

/** Their texts are names of modules, or names that other modules know. */
const directives: ReadonlySet<string> = new Set(['ImportDeclaration', 'ImportExpression', 'ExportAllDeclaration'])

/** Children that hold code: no types, no imports, no names of properties. */
export function children(part: Part): Part[] {
  const { type } = part
  if (directives.has(type) || (type.startsWith('TS') && !wrappers.has(type))) return []
  return Object.entries(part).flatMap(([field, value]) => {
    if (field === 'key' && !('computed' in part && part.computed)) return []
    return (Array.isArray(value) ? value : [value]).filter(isPart)
  })
}

const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value && typeof value.type === 'string'

const functions: ReadonlySet<string> = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
export const isFunction = ({ type }: Part): boolean => functions.has(type)

/** The name that V8 reports for a function: its own, or that of the variable, property or method it is given to. */
export function functionName(part: Part, parent: Part | undefined): string {
  const own = nameIn(part, 'id')
  if (own !== '' || parent === undefined) return own
  if (parent.type === 'VariableDeclarator') return nameIn(parent, 'id')
  const name = nameIn(parent, 'key')
  const kind = 'kind' in parent ? parent.kind : ''
  return kind === 'get' || kind === 'set' ? `${kind} ${name}` : name
}

/** The last name of a called function or constructed class: `error` of `this.#log.error`. */
export const calledName = (callee: Part): string =>
  callee.type === 'MemberExpression' ? nameIn(callee, 'property') : identifier(callee)

/** The name of an identifier in a field of a part; empty when the field holds anything else. */
export const nameIn = (part: Part, field: string): string =>
  identifier(Object.entries(part).find(([key]) => key === field)?.[1])

/** The name of an identifier, private ones with their #; empty for anything else. */
export function identifier(value: unknown): string {
  if (!isPart(value) || !('name' in value) || typeof value.name !== 'string') return ''
  return value.type === 'PrivateIdentifier' ? `#${value.name}` : value.name
}
