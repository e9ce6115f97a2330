import { Answer, type Data } from '../route.ts'
import type { Ended, Reply } from './asked.ts'
import { joined, member, objectText, type Quote } from './render.ts'

/** How a device shows an answer. */
export interface Showing {
  readonly quote: Quote
  /** Names in `data` that stay in clear. */
  readonly clear: ReadonlySet<string>
  /** Whether lists are shown by their length. */
  readonly elide: boolean
  readonly hmacAccessor: boolean
}

/** The members of `response` that are the answer's own. */
export function answerMembers(ended: Ended, showing: Showing): { auth: string; rest: string[] } {
  const { outcome, warnings } = ended
  const data = dataText(ended, showing)
  const said = member('warnings', warnings)
  if (!(outcome instanceof Answer)) return { auth: '', rest: [data, said] }
  const auth = outcome.auth ? authText(outcome.auth, showing) : ''
  const secret = outcome.lease ? member('secret', { lease_id: outcome.lease.id }) : ''
  return { auth, rest: [secret, data, said, member('headers', headerLists(outcome.headers))] }
}

function dataText(ended: Ended, { quote, clear, elide }: Showing): string {
  const data = dataOf(ended)
  if (data === undefined) return ''
  const text = objectText(elide ? elided(data) : data, quote, clear)
  return text === '{}' ? '' : `"data":${text}`
}

/** `data` of the envelope; of what goes out otherwise, a batch with failed items too, the body as a whole. */
function dataOf({ outcome, results, reply }: Ended): Data | undefined {
  if (results) return asBody(reply)
  if (!(outcome instanceof Answer)) return outcome
  if (outcome.raw ?? outcome.bare ?? outcome.status !== 200) return asBody(reply)
  return outcome.data ?? undefined
}

function asBody({ status, headers, body }: Reply): Data {
  const type = headers[headers.indexOf('Content-Type') + 1]
  return {
    ...(body.length === 0 ? {} : { http_content_type: type, http_raw_body: body }),
    http_status_code: status,
  }
}

/** A list is shown by its length, what is said of its items too. */
function elided(data: Data): Data {
  const { keys, key_info: info } = data
  return {
    ...data,
    ...(Array.isArray(keys) ? { keys: keys.length } : {}),
    ...(typeof info === 'object' && info !== null ? { key_info: Object.keys(info).length } : {}),
  }
}

function authText(auth: Data, { quote, hmacAccessor }: Showing): string {
  const accessor = typeof auth.accessor === 'string' ? auth.accessor : ''
  const members = joined([
    typeof auth.client_token === 'string' ? `"client_token":${quote(auth.client_token)}` : '',
    accessor === '' ? '' : `"accessor":${hmacAccessor ? quote(accessor) : JSON.stringify(accessor)}`,
    member('policies', auth.policies),
    member('token_policies', auth.token_policies),
    member('metadata', auth.metadata),
    member('num_uses', auth.num_uses),
    member('entity_id', auth.entity_id),
    member('token_type', auth.token_type),
    member('token_ttl', auth.lease_duration),
  ])
  return `"auth":{${members}}`
}

function headerLists(headers: Readonly<Record<string, string>>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
}
