import { badRequest } from '../errors.ts'

/** Deeper than any request of Vault's API, and shallow enough for recursion over the value. */
const maxDepth = 64
/** Values (objects, arrays and their members) of one body: a batch of 250,000 items; bounds what parsing allocates. */
const maxValues = 1_000_000

/**
 * Reads a body that must be one JSON object; nothing and `null` are the empty object. Error texts never repeat what
 * was sent: it may be a plaintext. A member named `__proto__` is an ordinary own property, as JSON.parse makes it.
 * @throws {ApiError} 400 in the reference's words
 */
export function parseJsonObject(body: Buffer): Readonly<Record<string, unknown>> {
  refuseComplexity(body)
  const text = body.toString('utf8')
  if (text.trim() === '') return {}
  const value = parse(text)
  if (value === null) return {}
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  throw badRequest(
    `failed to decode JSON input: json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`,
  )
}

function parse(text: string): unknown {
  try {
    // As Go does it: text that is no Unicode could not be stored. The test may be fooled into the slow way, not out of it.
    return /\\u[dD]/.test(text) ? JSON.parse(text, wellFormed) : JSON.parse(text)
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    // V8 quotes the input in some of its texts; the position is all of it that may go out.
    const position = / at position (\d+)/.exec(message)?.[1]
    if (message.startsWith('Unexpected end') || Number(position) === text.length) {
      throw badRequest('failed to decode JSON input: unexpected EOF')
    }
    const where = position === undefined ? '' : ` at character ${position}`
    throw badRequest(`failed to decode JSON input: invalid syntax${where}`)
  }
}

const wellFormed = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value

/** One pass over the bytes before anything is allocated, strings skipped. Malformed input is left to the parser. */
function refuseComplexity(body: Buffer): void {
  let depth = 0
  let values = 0
  let quoted = false
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]
    if (quoted) {
      if (byte === 0x5c) i++
      else if (byte === 0x22) quoted = false
    } else if (byte === 0x22) quoted = true
    else if (byte === 0x2c) values++
    else if (byte === 0x7b || byte === 0x5b) {
      values++
      if (++depth > maxDepth) throw tooComplex(`nested deeper than ${maxDepth} levels`)
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  if (values > maxValues) throw tooComplex(`more than ${maxValues} values`)
}

const tooComplex = (reason: string) => badRequest(`refused JSON input due to high complexity: ${reason}`)
