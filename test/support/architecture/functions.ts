import { parseAst } from 'vitest/node'

/** A node of an ECMAScript syntax tree (ESTree), with the members that are read here. */
interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

const functions: ReadonlySet<string> = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** Every function (methods and arrows too) with more lines than the limit, by the line where it begins. */
export function longFunctions(text: string, limit: number): { line: number; lines: number }[] {
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length
  return [...nodesIn(parseAst(text, { lang: 'ts' }))].flatMap(({ type, start, end }) => {
    if (!functions.has(type)) return []
    const lines = lineOf(end) - lineOf(start) + 1
    return lines > limit ? [{ line: lineOf(start), lines }] : []
  })
}

function* nodesIn(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return
  if ('type' in value && 'start' in value) yield value as Node
  for (const child of Object.values(value)) yield* nodesIn(child)
}
