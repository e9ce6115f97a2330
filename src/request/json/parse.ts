import { randomUUID } from 'node:crypto'
import { nextTurn } from '../../after.ts'
import { badRequest } from '../../errors.ts'
import type { MaybePromise } from '../../route.ts'
import { isLong } from '../exchange.ts'
import { type LongList, measureJson } from './measure.ts'
import { quoteRoundedNumbers } from './numbers.ts'

type JsonObject = Readonly<Record<string, unknown>>

/**
 * Reads a body that must be one JSON object; an empty body and `null` are the empty object. Error texts never repeat
 * the input: it may be a plaintext. A member named `__proto__` is an ordinary own property, as JSON.parse makes it. A
 * number that a double does not reproduce as written becomes a string of its text.
 *
 * Long bodies are not parsed in a thread: their values would be copied here again, in one go, which takes as long as
 * parsing them (as structured clones) or the same (as text). Instead values outside long lists are few (measure.ts), so
 * that one go is short, and lists are parsed in groups. A single long text costs each step a pass over its bytes, and
 * others have their turn between two steps.
 * @param longestList the most elements of a list that is a member of the object; one longer than 64 KiB is parsed in
 *   groups, with turns for other requests in between
 * @throws {ApiError} 400 in the reference's words
 */
export function parseJsonObject(body: Buffer, longestList = 0): MaybePromise<JsonObject> {
  const { lists, rounds } = measureJson(body, longestList)
  if (lists.length > 0) return parseInGroups(body, lists, rounds ? quoteRoundedNumbers : plainText)
  return isLong(body) ? parseBetweenTurns(body, rounds) : parseInOneGo(body, rounds)
}

async function parseBetweenTurns(body: Buffer, rounds: boolean): Promise<JsonObject> {
  await nextTurn()
  const object = parseInOneGo(body, rounds)
  await nextTurn()
  return object
}

function parseInOneGo(body: Buffer, rounds: boolean): JsonObject {
  const text = body.toString('utf8')
  if (text.trim() === '') return {}
  return asObject(rounds ? parseRounded(body, text) : parse(text))
}

/** The text of a part of a body. */
type TextOf = (bytes: Buffer) => string
const plainText: TextOf = (bytes) => bytes.toString('utf8')

function parseRounded(body: Buffer, text: string): unknown {
  try {
    return parse(quoteRoundedNumbers(body))
  } catch {
    // Parsed again for the position of the fault in the original.
    return parse(text)
  }
}

function asObject(value: unknown): JsonObject {
  if (value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value as JsonObject
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  throw badRequest(
    `failed to decode JSON input: json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`,
  )
}

/** Parses the rest of the body with a mark in place of each list, and then one list after the other. */
async function parseInGroups(body: Buffer, lists: readonly LongList[], textOf: TextOf): Promise<JsonObject> {
  // Random, so that no input can be mistaken for a mark.
  const id = randomUUID()
  const marks = new Map<unknown, LongList>()
  let text = ''
  let at = 0
  for (const [index, list] of lists.entries()) {
    const mark = `${id} ${index}`
    marks.set(mark, list)
    text += `${textOf(body.subarray(at, list.start))}"${mark}"`
    at = list.end + 1
  }
  const whole: Record<string, unknown> = { ...asObject(parse(text + textOf(body.subarray(at)), false)) }
  for (const [name, value] of Object.entries(whole)) {
    const list = marks.get(value)
    if (list) whole[name] = await parseList(body, list, textOf)
  }
  return whole
}

/** @throws {ApiError} 400 as if the list had been parsed in one go */
async function parseList(body: Buffer, { start, end, cuts }: LongList, textOf: TextOf): Promise<unknown[]> {
  // The closing character need not be a bracket.
  if (body[end] !== 0x5d) throw invalidSyntax()
  const elements: unknown[] = []
  let from = start + 1
  for (const to of [...cuts, end]) {
    const group = parse(`[${textOf(body.subarray(from, to))}]`, false) as unknown[]
    if (group.length === 0) throw invalidSyntax()
    for (const element of group) elements.push(element)
    from = to + 1
    await nextTurn()
  }
  return elements
}

const invalidSyntax = (where = '') => badRequest(`failed to decode JSON input: invalid syntax${where}`)

/** @param isWhole whether positions in it are those in the body */
function parse(text: string, isWhole = true): unknown {
  try {
    const value: unknown = JSON.parse(text)
    // As in Go: text that is not Unicode could not be stored. A false match of the tests costs only time; the first
    // finds out about megabytes without escapes much sooner.
    return text.includes('\\u') && /\\u[dD]/.test(text) ? wellFormed(value) : value
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    // V8 quotes the input in some of its texts; only the position may be reported.
    const position = / at position (\d+)/.exec(message)?.[1]
    if (message.startsWith('Unexpected end') || Number(position) === text.length) {
      throw badRequest('failed to decode JSON input: unexpected EOF')
    }
    throw invalidSyntax(position === undefined || !isWhole ? '' : ` at character ${position}`)
  }
}

/** In place. A reviver would take twenty times as long, seconds for a few megabytes. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) value[index] = wellFormed(element)
    return value
  }
  const members = value as Record<string, unknown>
  // An own member named __proto__ is set like any other.
  for (const name of Object.keys(members)) members[name] = wellFormed(members[name])
  return value
}
