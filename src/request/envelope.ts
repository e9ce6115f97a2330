import { randomUUID } from 'node:crypto'
import { quoted } from '../audit/render.ts'
import { type ApiError, errorLines } from '../errors.ts'
import { Answer, type Data, type Lease, type Outcome } from '../route.ts'
import { enclosed, type Stream } from '../stream.ts'
import type { RawReply } from './exchange.ts'

const noStore = ['Cache-Control', 'no-store'] as const
const json: readonly string[] = [...noStore, 'Content-Type', 'application/json']
const empty: RawReply = { status: 204, headers: noStore, body: '' }

/** Warnings of an answer; those of the route come first. */
export interface Warnings {
  /** About unknown or replaced parameters: sent only if there is a body. */
  readonly parameters: readonly string[]
  /** Of the route itself: for these, an answer without a body gets a body. */
  readonly route: readonly string[]
}

export const noWarnings: Warnings = { parameters: [], route: [] }

/** All of them in the order in which they are sent. */
export const allWarnings = ({ parameters, route }: Warnings): readonly string[] =>
  route.length === 0 ? parameters : [...route, ...parameters]

/**
 * Turns the result of `run` into the answer: 204, the reference's envelope (keys in its order, `data` sorted, one
 * newline at the end), a bare object, or bytes as they are.
 * @param inject whether the members of `data` are repeated at the top level
 */
export function envelope(requestId: string, outcome: Outcome, warnings: Warnings, inject: boolean): RawReply {
  if (outcome === undefined && warnings.route.length === 0) return empty
  const all = allWarnings(warnings)
  if (outcome === undefined) {
    return { status: 200, headers: json, body: wrapped(requestId, dataOnly(null), all, false) }
  }
  if (!(outcome instanceof Answer)) {
    return { status: 200, headers: json, body: wrapped(requestId, dataOnly(outcome), all, inject) }
  }
  const { status, raw, bare, pem } = outcome
  if (raw !== undefined) return { status, headers: headersOf(outcome, raw.type), body: raw.body }
  if (status === 204 || status === 304) return { status, headers: headersOf(outcome), body: '' }
  const headers = headersOf(outcome, 'application/json')
  if (bare !== undefined) return { status, headers, body: `${JSON.stringify(bare)}\n` }
  if (pem === undefined) return { status, headers, body: wrapped(requestId, outcome, all, inject) }
  return { status, headers, body: withPem(requestId, outcome, all, pem) }
}

/** Not to be cached, unless the answer itself says otherwise. */
function headersOf({ headers }: Answer, type?: string): readonly string[] {
  const store = headers['Cache-Control'] === undefined ? noStore : []
  return extended(type === undefined ? store : [...store, 'Content-Type', type], headers)
}

type Content = Pick<Answer, 'data' | 'auth' | 'lease'>
const dataOnly = (data: Data | null): Content => ({ data, auth: null, lease: null })

function wrapped(id: string, { data, auth, lease }: Content, warnings: readonly string[], inject: boolean): string {
  const dataText = data === null ? 'null' : textOf(sorted(data))
  const warningsText = warnings.length === 0 ? 'null' : JSON.stringify(warnings)
  const authText = auth === null ? 'null' : JSON.stringify(auth)
  const head = `{"request_id":"${id}",${leaseText(lease)},"data":${dataText}`
  const tail = inject && data !== null ? injected(data) : ''
  return `${head},"wrap_info":null,"warnings":${warningsText},"auth":${authText}${tail}}\n`
}

/** JSON.stringify takes three times as long for a text of megabytes, such as a ciphertext. */
const longText = 1 << 16

function textOf(data: Data): string {
  for (const name in data) {
    const value = data[name]
    if (typeof value === 'string' && value.length > longText) return textOfMembers(data)
  }
  return JSON.stringify(data)
}

function textOfMembers(data: Data): string {
  let members = ''
  for (const [name, value] of Object.entries(data)) {
    if (value === undefined) continue
    const text = typeof value === 'string' ? quoted(value) : JSON.stringify(value)
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${text}`
  }
  return `{${members}}`
}

/** An envelope with a PEM text in its data; the text is read while the envelope is sent. */
function withPem(
  id: string,
  answer: Answer,
  warnings: readonly string[],
  { name, text }: NonNullable<Answer['pem']>,
): Stream {
  // Unguessable: the rest of the data may contain texts chosen by callers.
  const place = randomUUID()
  const whole = wrapped(id, { ...answer, data: { ...answer.data, [name]: place } }, warnings, false)
  const [before = '', after = ''] = whole.split(place)
  return enclosed(Buffer.from(before), text.inJson(), Buffer.from(after))
}

const leaseText = (lease: Lease | null): string =>
  lease === null
    ? '"lease_id":"","renewable":false,"lease_duration":0'
    : `"lease_id":${JSON.stringify(lease.id)},"renewable":${lease.renewable},"lease_duration":${lease.durationSeconds}`

const envelopeKeys: ReadonlySet<string> = new Set(
  'request_id lease_id renewable lease_duration data wrap_info warnings auth'.split(' '),
)

/** The members of `data` again, after the envelope's own, which they never replace. */
function injected(data: Data): string {
  const members = Object.entries(sorted(data)).filter(([key, value]) => !envelopeKeys.has(key) && value !== undefined)
  return members.map(([key, value]) => `,${JSON.stringify(key)}:${JSON.stringify(value)}`).join('')
}

/** Go prints a map with its keys sorted. Hot routes return them in order and pay only for the check. */
function sorted(data: Data): Data {
  let before = ''
  for (const key in data) {
    if (key < before) return Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
    before = key
  }
  return data
}

function extended(headers: readonly string[], more: Readonly<Record<string, string>>): readonly string[] {
  const extra = Object.entries(more)
  return extra.length === 0 ? headers : [...headers, ...extra.flat()]
}

/** `{"errors":[…]}`, with `data` beside it if the error carries results (a batch), and warnings if there are any. */
export function errorReply(error: ApiError, warnings: readonly string[] = []): RawReply {
  const body = {
    errors: errorLines(error),
    ...(error.data === undefined ? {} : { data: sorted(error.data) }),
    ...(warnings.length === 0 ? {} : { warnings }),
  }
  const retry = error.retryAfterSeconds === undefined ? {} : { 'Retry-After': String(error.retryAfterSeconds) }
  return { status: error.status, headers: extended(json, retry), body: `${JSON.stringify(body)}\n` }
}
