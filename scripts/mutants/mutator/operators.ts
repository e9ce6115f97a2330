import { type Expression, identifier, type Part, type Syntax } from './syntax.ts'

/** A part of the source and the text in its place. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Every replacement that an operator finds at a node. */
type Operator = (node: Syntax, source: string) => Edit[]

/** Operator signs, and those that take their places. */
const comparisons: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
}
const calculations: Readonly<Record<string, readonly string[]>> = {
  ...{ '+': ['-'], '-': ['+'], '*': ['/'], '/': ['*'], '%': ['*'], '**': ['*'] },
  ...{ '&': ['|'], '|': ['&'], '^': ['&'], '<<': ['>>'], '>>': ['<<'], '>>>': ['<<'] },
  ...{ '+=': ['-='], '-=': ['+='], '*=': ['/='], '/=': ['*='], '&=': ['|='], '|=': ['&='], '^=': ['&='] },
}
const connectives: Readonly<Record<string, readonly string[]>> = { '&&': ['||'], '||': ['&&'] }

/** The table of operators, by the names in reports. */
export const operators: Readonly<Record<string, Operator>> = {
  comparison: (node, source) => (node.type === 'BinaryExpression' ? signs(node, comparisons, source) : []),
  connective: (node, source) => (node.type === 'LogicalExpression' ? signs(node, connectives, source) : []),
  arithmetic: (node, source) => {
    if (node.type === 'UpdateExpression') return step(node, source)
    if (node.type === 'AssignmentExpression') return signs(node, calculations, source)
    return node.type === 'BinaryExpression' && !joinsTexts(node) ? signs(node, calculations, source) : []
  },
  condition: (node, source) => {
    const test = 'test' in node ? node.test : null
    if (node.type === 'SwitchStatement' || !test) return []
    // Another operator flips these.
    if (test.type === 'Literal' || (test.type === 'BinaryExpression' && test.operator in comparisons)) return []
    return [{ ...placeOf(test), text: negation(test, source) }]
  },
  boolean: (node) =>
    node.type === 'Literal' && typeof node.value === 'boolean' ? [{ ...placeOf(node), text: String(!node.value) }] : [],
  integer: (node) => (node.type === 'Literal' ? next(node) : []),
  string: (node, source) => (isText(node, source) ? [{ ...placeOf(node), text: "''" }] : []),
  'fallback dropped': (node, source) =>
    node.type === 'LogicalExpression' && node.operator === '??'
      ? [node.left, node.right].map((side) => ({ ...placeOf(node), text: `(${textOf(side, source)})` }))
      : [],
  'call removed': (node) => (node.type === 'ExpressionStatement' && isCall(node.expression) ? [removal(node)] : []),
  'guard removed': (node) =>
    node.type === 'IfStatement' && node.alternate === null && isExit(node.consequent) ? [removal(node)] : [],
  return: (node) => {
    const value = node.type === 'ReturnStatement' || isBrief(node) ? returned(node) : null
    return value ? otherValues(value).map((text) => ({ ...placeOf(value), text })) : []
  },
}

const placeOf = ({ start, end }: Part): Omit<Edit, 'text'> => ({ start, end })
const textOf = ({ start, end }: Part, source: string): string => source.slice(start, end)
const removal = (node: Part): Edit => ({ ...placeOf(node), text: ';' })

/** The sign lies between the operands. */
function signs(
  { operator, left, right }: { readonly operator: string; readonly left: Part; readonly right: Part },
  table: Readonly<Record<string, readonly string[]>>,
  source: string,
): Edit[] {
  if (!Object.hasOwn(table, operator)) return []
  const start = source.indexOf(operator, left.end)
  if (start < 0 || start >= right.start) throw new Error(`no ${operator} between ${left.end} and ${right.start}`)
  return (table[operator] ?? []).map((text) => ({ start, end: start + operator.length, text }))
}

function step(node: Part & { readonly operator: string }, source: string): Edit[] {
  const text = textOf(node, source)
  return [{ ...placeOf(node), text: text.replace(node.operator, node.operator === '++' ? '--' : '++') }]
}

/** A `+` beside a text in quotes; the type check recognises two variables that hold texts. */
const joinsTexts = ({ left, right }: { readonly left: Part; readonly right: Part }): boolean =>
  [left, right].some((side) => side.type === 'TemplateLiteral' || ('value' in side && typeof side.value === 'string'))

const plain: ReadonlySet<string> = new Set(['Identifier', 'CallExpression', 'MemberExpression'])

function negation(test: Expression, source: string): string {
  if (test.type === 'UnaryExpression' && test.operator === '!') return textOf(test.argument, source)
  return plain.has(test.type) ? `!${textOf(test, source)}` : `!(${textOf(test, source)})`
}

function next(node: Part & { readonly value: unknown }): Edit[] {
  if (typeof node.value === 'bigint') return [{ ...placeOf(node), text: `${node.value + 1n}n` }]
  return Number.isSafeInteger(node.value) ? [{ ...placeOf(node), text: String(Number(node.value) + 1) }] : []
}

/** A constant text without a space: with one it is a message, or SQL that fails at once. */
function isText(node: Syntax, source: string): boolean {
  if (node.type === 'Literal') return typeof node.value === 'string' && /^\S+$/.test(node.value)
  if (node.type !== 'TemplateLiteral') return false
  return node.quasis.every(({ value }) => !/\s/.test(value.raw)) && textOf(node, source) !== '``'
}

const isCall = (expression: Expression): boolean =>
  expression.type === 'AwaitExpression' || (expression.type === 'UnaryExpression' && expression.operator === 'void')
    ? isCall(expression.argument)
    : expression.type === 'CallExpression' ||
      (expression.type === 'ChainExpression' && expression.expression.type === 'CallExpression')

const exits: ReadonlySet<string> = new Set(['ReturnStatement', 'ThrowStatement', 'ContinueStatement', 'BreakStatement'])

/** A statement that leaves, alone or in braces. */
const isExit = (statement: Part & { readonly body?: unknown }): boolean =>
  exits.has(statement.type) ||
  (statement.type === 'BlockStatement' &&
    Array.isArray(statement.body) &&
    statement.body.length === 1 &&
    exits.has(statement.body[0].type))

const isBrief = (node: Syntax): boolean => node.type === 'ArrowFunctionExpression' && node.expression

const returned = (node: Syntax): Part | null => {
  if (node.type === 'ReturnStatement') return node.argument
  return node.type === 'ArrowFunctionExpression' ? node.body : null
}

/** Values of simple kinds; the type check refuses those that the function may not return. */
function otherValues(value: Part & { readonly elements?: unknown }): string[] {
  if (value.type === 'ArrayExpression') return Array.isArray(value.elements) && value.elements.length > 0 ? ['[]'] : []
  if (value.type === 'ObjectExpression' || value.type === 'NewExpression') return ['undefined']
  if (value.type === 'LogicalExpression' || value.type === 'BinaryExpression') return ['true', 'false']
  if (identifier(value) === 'undefined') return []
  const kinds = ['Identifier', 'CallExpression', 'AwaitExpression', 'MemberExpression', 'ConditionalExpression']
  return kinds.includes(value.type) ? ['undefined', 'true', 'false'] : []
}
