/** Parts of secret fields' names, in lower case and without separators: their values are never shown. */
const secretNames =
  /^(?:pin|key|hash|input)$|token|secret|password|passphrase|plaintext|credential|authorization|cookie|private|privkey|batch|blob/

/** Names that contain one of the above and are safe to show. */
const harmless: ReadonlySet<string> = new Set(['tokenid', 'tokentype', 'tokenpolicies', 'keyid', 'keyversion'])

const deepest = 6
const longestList = 50
/** A credential of ours inside a text, as in the path of an old-style look-up. Its dot may be percent-encoded. */
const credentials = /(hv[sbr](?:\.|%2[Ee]))[A-Za-z0-9_-]{8,}/g

/** A text with its credentials of ours made unreadable. */
export const withoutCredentials = (text: string): string => text.replace(credentials, '$1[redacted]')

/** A text with its credentials of ours shown otherwise. @param show gets each as its owner sends it */
export const withCredentialsShown = (text: string, show: (credential: string) => string): string =>
  text.replace(credentials, (found) => show(found.replace(/%2[Ee]/, '.')))

/**
 * A copy of a log entry without secrets: without the values of fields with secret names at any depth, credentials
 * recognised by their form, and all bytes. An error keeps its description and its causes: other properties may carry
 * results meant for the client alone.
 */
export const scrub = (fields: object): Record<string, unknown> => object(fields, 0)

function object(fields: object, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields))
    shown[name] = isSecret(name) ? '[redacted]' : show(value, depth + 1)
  return shown
}

function isSecret(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return secretNames.test(plain) && !harmless.has(plain)
}

function show(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return withoutCredentials(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? '[function]' : value
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth > deepest) return '[deeper]'
  if (value instanceof Error) return error(value, depth)
  if (value instanceof Date) return value.toJSON()
  if (Array.isArray(value)) return value.slice(0, longestList).map((item) => show(item, depth + 1))
  if (value instanceof Map) return `[map of ${value.size}]`
  if (value instanceof Set) return `[set of ${value.size}]`
  return object(value, depth)
}

function error(fault: Error, depth: number): Record<string, unknown> {
  const about: Record<string, unknown> = { type: fault.name, message: show(fault.message, depth) }
  const { code, status } = fault as { code?: unknown; status?: unknown }
  if (typeof code === 'string' || typeof code === 'number') about.code = code
  if (typeof status === 'number') about.status = status
  about.stack = show(fault.stack, depth)
  if (fault instanceof AggregateError) about.errors = show(fault.errors, depth + 1)
  if (fault.cause !== undefined) about.cause = show(fault.cause, depth + 1)
  return about
}
