import { badRequest } from '../../errors.ts'

/**
 * Reads the part of HCL 1 that policies use, and its JSON spelling, into one tree: blocks, lists, quoted strings,
 * numbers, booleans, the three kinds of comment. No maintained JavaScript library reads HCL 1. Stricter than the
 * original in surprising places: no heredocs, no octal or \x escapes.
 */
export type Value = string | number | boolean | readonly Value[] | Block

export interface Block {
  readonly entries: readonly Entry[]
}

export const isBlock = (value: Value): value is Block => typeof value === 'object' && !Array.isArray(value)

export interface Entry {
  /** `path "a" { … }` has two, `name = "x"` and every JSON member have one. */
  readonly keys: readonly [string, ...string[]]
  readonly value: Value
  readonly line: number
  /** Line of the `=`, 0 without one: clients see it as the line of the key, as in Vault. */
  readonly assignedOnLine: number
}

interface Lexeme {
  readonly kind: 'string' | 'word' | 'number' | 'mark' | 'end'
  readonly text: string
  readonly line: number
  readonly column: number
}

/** Nothing in a policy is nested deeper than 4; the limit keeps hostile text from exhausting the stack. */
const maxDepth = 16

const skipped = /(?:[ \t\r\n]+|#[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
const word = /[\p{L}_][\p{L}\p{Nd}_.-]*/uy
const number = /-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.])/iy
const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
}

/**
 * @param text a policy in HCL 1, or in JSON when its first character is `{`
 * @returns the top level
 * @throws ApiError 400 `failed to parse policy: At LINE:COLUMN: …`
 */
export function readHcl(text: string): Block {
  const json = text.trimStart().startsWith('{')
  if (json) checkJson(text)
  const parser = new Parser(text, json)
  return json ? parser.document() : parser.body('end', 0)
}

/** The grammar below is laxer than JSON (commas, comments), so JSON proper is checked first. */
function checkJson(text: string): void {
  try {
    JSON.parse(text)
  } catch (error) {
    throw badRequest(`failed to parse policy: ${error instanceof Error ? error.message : 'not JSON'}`)
  }
}

class Parser {
  readonly #text: string
  readonly #json: boolean
  #at = 0
  #line = 1
  #lineStart = 0
  #next: Lexeme

  constructor(text: string, json: boolean) {
    this.#text = text
    this.#json = json
    this.#next = this.#read()
  }

  document(): Block {
    this.#take('{')
    const block = this.body('}', 1)
    if (this.#next.kind !== 'end') this.#fail('text after the end of the object')
    return block
  }

  body(end: '}' | 'end', depth: number): Block {
    if (depth > maxDepth) this.#fail('nested too deeply')
    const entries: Entry[] = []
    while (end === 'end' ? this.#next.kind !== 'end' : !this.#is(end)) {
      entries.push(this.#entry(depth))
      if (this.#is(',')) this.#advance()
    }
    if (end === '}') this.#take('}')
    return { entries }
  }

  #entry(depth: number): Entry {
    const line = this.#next.line
    const keys: [string, ...string[]] = [this.#key()]
    while (!this.#json && (this.#next.kind === 'word' || this.#next.kind === 'string')) keys.push(this.#key())
    const assign = this.#next
    if (keys.length === 1 && this.#is(this.#json ? ':' : '=')) {
      this.#advance()
      return { keys, value: this.#value(depth), line, assignedOnLine: assign.line }
    }
    this.#take('{')
    return { keys, value: this.body('}', depth + 1), line, assignedOnLine: 0 }
  }

  #key(): string {
    const { kind, text } = this.#next
    if (kind !== 'string' && (kind !== 'word' || this.#json)) this.#fail(`expected a key, found ${this.#shown()}`)
    this.#advance()
    return text
  }

  #value(depth: number): Value {
    const { kind, text } = this.#next
    if (this.#is('{')) {
      this.#advance()
      return this.body('}', depth + 1)
    }
    if (this.#is('[')) return this.#list(depth + 1)
    if (kind === 'string' || kind === 'number' || (kind === 'word' && (text === 'true' || text === 'false'))) {
      this.#advance()
      return kind === 'string' ? text : kind === 'number' ? Number(text) : text === 'true'
    }
    return this.#fail(`expected a value, found ${this.#shown()}`)
  }

  #list(depth: number): Value[] {
    if (depth > maxDepth) this.#fail('nested too deeply')
    this.#take('[')
    const items: Value[] = []
    while (!this.#is(']')) {
      items.push(this.#value(depth))
      if (!this.#is(']')) this.#take(',')
    }
    this.#take(']')
    return items
  }

  #is(mark: string): boolean {
    return this.#next.kind === 'mark' && this.#next.text === mark
  }

  #take(mark: string): void {
    if (!this.#is(mark)) this.#fail(`expected "${mark}", found ${this.#shown()}`)
    this.#advance()
  }

  #shown(): string {
    return this.#next.kind === 'end' ? 'the end' : JSON.stringify(this.#next.text)
  }

  #advance(): void {
    this.#next = this.#read()
  }

  #read(): Lexeme {
    this.#match(skipped)
    const here = { line: this.#line, column: this.#at - this.#lineStart + 1 }
    const character = this.#text[this.#at]
    if (character === undefined) return { kind: 'end', text: '', ...here }
    if (character === '"') return { kind: 'string', text: this.#string(here), ...here }
    const name = this.#match(word)
    if (name) return { kind: 'word', text: name, ...here }
    const figure = this.#match(number)
    if (figure) return { kind: 'number', text: figure, ...here }
    if (!'{}[]=,:'.includes(character)) this.#fail(`illegal character ${JSON.stringify(character)}`, here)
    this.#at++
    return { kind: 'mark', text: character, ...here }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found === undefined) return undefined
    for (let end = found.indexOf('\n'); end >= 0; end = found.indexOf('\n', end + 1)) {
      this.#line++
      this.#lineStart = this.#at + end + 1
    }
    this.#at += found.length
    return found
  }

  #string(here: { line: number; column: number }): string {
    const start = this.#at
    let end = start + 1
    for (; this.#text[end] !== '"'; end += this.#text[end] === '\\' ? 2 : 1)
      if (end >= this.#text.length || this.#text[end] === '\n') this.#fail('literal not terminated', here)
    this.#at = end + 1
    const raw = this.#text.slice(start, end + 1)
    if (this.#json) return JSON.parse(raw) as string
    return raw.slice(1, -1).replace(/\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.|$))/gsu, (_, short, long, simple) => {
      const code = Number.parseInt(short ?? long ?? '', 16)
      if (code <= 0x10ffff) return String.fromCodePoint(code)
      return escapes[simple] ?? this.#fail('illegal char escape', here)
    })
  }

  #fail(reason: string, at: { line: number; column: number } = this.#next): never {
    throw badRequest(`failed to parse policy: At ${at.line}:${at.column}: ${reason}`)
  }
}
