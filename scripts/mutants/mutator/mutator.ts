import { parseAst } from 'vitest/node'
import { isMessage } from './messages.ts'
import { type Edit, operators } from './operators.ts'
import { children, functionName, isFunction, nameIn, type Part, type Syntax } from './syntax.ts'

/** One small fault that a test should notice. */
export interface Mutant extends Edit {
  readonly operator: string
  readonly line: number
  /** The expression or statement around the fault, without and with it, on one line. */
  readonly before: string
  readonly after: string
  /** The innermost function with a name; empty outside of functions. */
  readonly within: string
}

const longestShown = 100

/** Every mutant of a source file in TypeScript, by place. Whether it passes the type check is not known here. */
export function mutantsOf(source: string): Mutant[] {
  const lineAt = (offset: number): number => source.slice(0, offset).split('\n').length
  const found = new Map<string, Mutant>()
  for (const { node, within } of nodesIn(parseAst(source, { lang: 'ts' }))) {
    for (const [operator, edits] of Object.entries(operators)) {
      for (const edit of edits(node, source)) {
        const after = applied(source, edit)
        const grown = after.length - source.length
        const mutant = {
          ...{ ...edit, operator, line: lineAt(edit.start), within },
          ...{
            before: shown(source.slice(node.start, node.end)),
            after: shown(after.slice(node.start, node.end + grown)),
          },
        }
        // Two operators may make the same change; the outer node comes first.
        if (after !== source && !found.has(after)) found.set(after, mutant)
      }
    }
  }
  return [...found.values()].sort((one, other) => one.start - other.start)
}

/** The source with one change. */
export const applied = (source: string, { start, end, text }: Edit): string =>
  source.slice(0, start) + text + source.slice(end)

interface Place {
  readonly node: Syntax
  readonly within: string
}

/** Every node with code of its own, outer ones first; no types, imports, messages and log lines. */
function* nodesIn(part: Part, parent?: Part, within = ''): Generator<Place> {
  if (isMessage(part, parent)) return
  const inside = innermost(part, parent) || within
  yield { node: part as Syntax, within: inside }
  for (const child of children(part)) yield* nodesIn(child, part, inside)
}

/**
 * The name that a part gives to the code in it, as V8 has it: a constructor is a function with the name of its class.
 */
function innermost(part: Part, parent: Part | undefined): string {
  if (part.type === 'ClassDeclaration') return nameIn(part, 'id')
  if (part.type === 'PropertyDefinition') return '<instance_members_initializer>'
  const name = isFunction(part) ? functionName(part, parent) : ''
  return name === 'constructor' ? '' : name
}

function shown(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > longestShown ? `${line.slice(0, longestShown)}…` : line
}
