import { type ApiError, badRequest } from '../errors.ts'
import { type Lenient, wholeBody } from '../field.ts'
import { convert, type Refuse } from './convert.ts'
import type { Input } from './input.ts'
import { ignoredWarning, shownNames } from './names/ignored.ts'

/** One declared field, ready to convert and check. */
export interface Field {
  readonly name: string
  /** Its name and its aliases. */
  readonly spellings: readonly string[]
  readonly lenient: Lenient
  readonly aliases: readonly string[]
  readonly minimum: number | undefined
  readonly maximum: number | undefined
  readonly values: readonly unknown[] | undefined
  /** The most characters. */
  readonly longest: number
  /** The meaning of an explicit null; undefined if it is like an absent field. */
  readonly initial: unknown
  /** Whether the route itself reads an explicit null. */
  readonly own: boolean
  readonly refuse: Refuse
}

/** The fields of one route, compiled at start. */
export interface Fields {
  /** By name and by alias. */
  readonly known: ReadonlyMap<string, Field>
  /** Each field once. */
  readonly all: readonly Field[]
  /** The fields with aliases. */
  readonly aliased: readonly Field[]
  /** Names captured from the URL. */
  readonly captured: ReadonlySet<string>
}

/** Parameters under their declared names, not yet converted, and warnings about the others. */
export interface Named {
  readonly values: Record<string, unknown>
  readonly warnings: readonly string[]
}

/**
 * Reads the declaration of a body made of the fields of field.ts.
 * @param captured names captured from the URL, which win over parameters of the same name
 * @throws {Error} at start, when a property is not such a field, exists on every object or shares a name with another
 */
export function compileFields(properties: Readonly<Record<string, object>>, captured: readonly string[]): Fields {
  const known = new Map<string, Field>()
  for (const [name, schema] of Object.entries(properties)) {
    if (name in Object.prototype) throw new Error(`field ${name} is a property of every object`)
    const field = compileField(name, schema)
    for (const spelling of [name, ...field.aliases]) {
      if (known.has(spelling)) throw new Error(`two fields answer to the name ${spelling}`)
      known.set(spelling, field)
    }
  }
  const all = [...new Set(known.values())]
  const aliased = all.filter((field) => field.aliases.length > 0)
  return { known, all, aliased, captured: new Set(captured) }
}

/** The schema written by the makers of field.ts. */
interface Schema {
  readonly lenient?: Lenient
  readonly aliases?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly unknown[]
  readonly longest?: number
  readonly default?: unknown
  readonly own?: boolean
}

function compileField(name: string, schema: Schema): Field {
  if (schema.lenient === undefined) throw new Error(`field ${name} was not made by field.ts`)
  return {
    name,
    spellings: [name, ...(schema.aliases ?? [])],
    lenient: schema.lenient,
    aliases: schema.aliases ?? [],
    minimum: schema.minimum,
    maximum: schema.maximum,
    values: schema.enum,
    longest: schema.longest ?? wholeBody,
    initial: schema.default,
    own: schema.own === true,
    refuse: (reason) => {
      throw invalid(`error converting input for field "${name}": ${reason}`)
    },
  }
}

const invalid = (text: string): ApiError => badRequest(`Field validation failed: ${text}`)

/**
 * Brings parameters under the names the route declares: aliases resolved, null read as absent or as the field's initial
 * value, unless the route reads it itself; undeclared parameters and those that the URL replaces are left out with a
 * warning. Nothing is converted yet.
 */
export function normaliseNames(fields: Fields, input: Input): Named {
  const values: Record<string, unknown> = {}
  const ignored: string[] = []
  const replaced: string[] = []
  for (const name of Object.keys(input)) {
    const value = input[name]
    if (fields.captured.has(name)) {
      if (value !== null) replaced.push(name)
    } else {
      const field = fields.known.get(name)
      if (field === undefined) ignored.push(name)
      else if (field.name === name && value !== null) values[name] = value
      else if (field.name === name && field.initial !== undefined) values[name] = field.own ? null : field.initial
    }
  }
  for (const field of fields.aliased) {
    if (values[field.name] !== undefined) continue
    const alias = field.aliases.find((name) => Object.hasOwn(input, name) && input[name] !== null)
    if (alias !== undefined) values[field.name] = input[alias]
  }
  return { values, warnings: warningsFor(ignored, replaced) }
}

const none: readonly string[] = []

function warningsFor(ignored: string[], replaced: string[]): readonly string[] {
  if (ignored.length === 0 && replaced.length === 0) return none
  const warnings = []
  if (ignored.length > 0) warnings.push(ignoredWarning(ignored))
  if (replaced.length > 0) {
    warnings.push(
      `Endpoint replaced the value of these parameters with the values captured from the endpoint's path: [${shownNames(replaced)}]`,
    )
  }
  return warnings
}

/**
 * Converts named values to the types the fields declare and checks their bounds.
 * @returns only declared names: a plain object, several times as fast as one without prototype
 * @throws {ApiError} 400 `Field validation failed: …` naming the field and its bounds
 */
export function convertFields(fields: Fields, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const field of fields.all) {
    const sent = values[field.name]
    if (sent === undefined) continue
    if (sent === null) {
      body[field.name] = null
      continue
    }
    // Before the conversion, which may cost time for every character.
    if (field.longest !== wholeBody && lengthOf(sent) > field.longest)
      field.refuse(`longer than ${field.longest} characters`)
    const value = convert(field.lenient, sent, field.refuse)
    checkBounds(field, value)
    body[field.name] = value
  }
  return body
}

/** The characters of a text, or of all texts and keys in a list or an object. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((length: number, element) => length + lengthOf(element), 0)
  return Object.entries(value).reduce((length, [key, element]) => length + key.length + lengthOf(element), 0)
}

function checkBounds(field: Field, value: unknown): void {
  if (field.minimum !== undefined && (value as number) < field.minimum) {
    throw invalid(`field "${field.name}" must be at least ${field.minimum}`)
  }
  if (field.maximum !== undefined && (value as number) > field.maximum) {
    throw invalid(`field "${field.name}" must be at most ${field.maximum}`)
  }
  if (field.values !== undefined && !field.values.includes(value)) {
    throw invalid(`field "${field.name}" must be one of ${field.values.map((one) => one || '""').join(', ')}`)
  }
}
