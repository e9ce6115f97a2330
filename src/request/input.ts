import { ApiError, badRequest } from '../errors.ts'
import type { MaybePromise, Method } from '../route.ts'
import { parseJsonObject } from './json/parse.ts'

/** Parameters by name, as the caller spelled them. */
export type Input = Readonly<Record<string, unknown>>

/**
 * The operation of a request, from its method and query. PUT is POST and `GET ?list=true` is LIST.
 * @throws {ApiError} 405 for an unknown method, 400 for OPTIONS and for a `list` that is not a Go bool
 */
export function methodOf(method: string, query: URLSearchParams | undefined): Method {
  switch (method) {
    case 'GET':
      return query !== undefined && listing(query) ? 'LIST' : 'GET'
    case 'POST':
    case 'PUT':
      return 'POST'
    case 'LIST':
    case 'DELETE':
    case 'PATCH':
    case 'HEAD':
      return method
    case 'OPTIONS':
      throw new ApiError(400, 'cannot handle internal-only request operation')
    default:
      throw new ApiError(405, [])
  }
}

function listing(query: URLSearchParams): boolean {
  const word = query.get('list')
  if (word === null || word === '') return false
  if (goTrue.has(word)) return true
  if (goFalse.has(word)) return false
  throw new ApiError(400, [])
}

/** The words of Go's strconv.ParseBool. */
export const goTrue: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
export const goFalse: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

/** Parameters of a GET, LIST, DELETE or HEAD: a repeated key is a list; `list` and `help` belong to the protocol. */
export function queryInput(query: URLSearchParams | undefined): Input {
  const input: Record<string, unknown> = Object.create(null)
  if (query === undefined) return input
  for (const [name, value] of query) {
    if (name === 'list' || name === 'help') continue
    const before = input[name]
    if (before === undefined) input[name] = value
    else if (Array.isArray(before)) before.push(value)
    else input[name] = [before, value]
  }
  return input
}

/**
 * Parameters of a write. The body is read as JSON whatever its content type, because Go clients send none and curl says
 * form; it is read as a form only if it is declared as one and does not begin like JSON.
 * @param longestList the most elements of a list of the route (Route.longestList)
 * @throws {ApiError} 400 for JSON that cannot be read, 415 for a PATCH in another format
 */
export function bodyInput(
  method: Method,
  contentType: string,
  body: Buffer,
  longestList?: number,
): MaybePromise<Input> {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (method === 'PATCH' && !patchTypes.has(type)) {
    throw new ApiError(415, `PATCH requires Content-Type of application/merge-patch+json, provided ${printed(type)}`)
  }
  if (type === 'application/x-www-form-urlencoded' && looksLikeForm(body)) return formInput(body)
  return parseJsonObject(body, longestList)
}

const patchTypes: ReadonlySet<string> = new Set(['', 'application/merge-patch+json', 'application/json'])
const printed = (type: string) => type.replace(/[^\x21-\x7e]/g, '?').slice(0, 100)

function looksLikeForm(body: Buffer): boolean {
  const start = body.toString('latin1', 0, 512).trimStart()
  return start !== '' && !start.startsWith('{') && !start.startsWith('[')
}

/** Forms are written by hand; a bound here keeps 32 MiB of `&` from becoming a gigabyte of objects. */
const maxFormBytes = 1024 * 1024

function formInput(body: Buffer): Input {
  if (body.length > maxFormBytes) throw badRequest(`a form may hold at most ${maxFormBytes} bytes; send JSON`)
  const input: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URLSearchParams(body.toString('utf8'))) {
    input[name] = input[name] === undefined ? value : `${input[name]},${value}`
  }
  return input
}
