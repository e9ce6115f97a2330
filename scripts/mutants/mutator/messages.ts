import { calledName, type Expression, nameIn, type Part } from './syntax.ts'

/** Functions of this project that make errors from texts, beside classes known by their names. */
const refusals = /^(badRequest|denied|unavailable|malformed|refuse|refusal|fail|failed|reject|wrongSize|nameRefusal)$/
const errors = /(Error|Failure|TimedOut|DamagedRow|DuplicateRow|LeaseLost|Conflict|UnknownOutcome)$/
/** Properties, variables and parameters that hold sentences. */
const sentences: ReadonlySet<string> = new Set(['why', 'remedy', 'about', 'description', 'reason', 'help', 'message'])

type Called = Part & { readonly callee: Expression; readonly arguments: readonly Part[] }
const isCalled = (part: Part): part is Called => part.type === 'CallExpression' || part.type === 'NewExpression'

/** Whether a part of the syntax is text for people: of an error or a log line, without effect on the program. */
export function isMessage(part: Part, parent: Part | undefined): boolean {
  if (isLogCall(part) || (part.type === 'ExpressionStatement' && 'expression' in part && isLogCall(part.expression)))
    return true
  if (parent === undefined) return false
  if (isCalled(parent) && parent.arguments.includes(part)) return makesError(parent)
  const name = nameIn(parent, 'key') || nameIn(parent, 'id')
  return (part.type === 'Literal' || part.type === 'TemplateLiteral') && sentences.has(name)
}

const makesError = ({ type, callee }: Called): boolean =>
  type === 'NewExpression' ? errors.test(calledName(callee)) : refusals.test(calledName(callee))

/** A call of a logger's method: `this.#log.warn(…)`. */
function isLogCall(part: unknown): boolean {
  if (typeof part !== 'object' || part === null || !('type' in part)) return false
  if (part.type === 'ChainExpression' && 'expression' in part) return isLogCall(part.expression)
  if (part.type !== 'CallExpression' || !('callee' in part)) return false
  const callee = part.callee as Expression
  return callee.type === 'MemberExpression' && /^#?log$/i.test(calledName(callee.object))
}
