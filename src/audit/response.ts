import { Answer, type Data } from '../route.ts'
import { Stream } from '../stream.ts'
import { contentMembers, shownData } from './elision.ts'
import type { Reply, ResponseEntry } from './entry.ts'
import { joined, member, objectText, type Quote } from './render.ts'

/** How a device shows a response. */
export interface ResponseFormat {
  readonly quote: Quote
  /** Shows the credentials in a text that is in clear. */
  readonly hide: (text: string) => string
  /** Names in `data` that stay in clear. */
  readonly clear: ReadonlySet<string>
  /** Whether lists are replaced by their length. */
  readonly elide: boolean
  readonly hmacAccessor: boolean
}

/** The members of `response` that come from the outcome. */
export function responseMembers(response: ResponseEntry, format: ResponseFormat): { auth: string; rest: string[] } {
  const { outcome } = response
  const data = dataText(response, format)
  const warnings = format.hide(member('warnings', response.warnings))
  if (!(outcome instanceof Answer)) return { auth: '', rest: [data, warnings] }
  const auth = outcome.auth ? authText({ ...outcome.auth, ...outcome.audited }, format) : ''
  const secret = outcome.lease ? member('secret', { lease_id: outcome.lease.id }) : ''
  return { auth, rest: [secret, data, warnings, member('headers', headerLists(outcome.headers))] }
}

function dataText(response: ResponseEntry, { quote, clear, elide }: ResponseFormat): string {
  const data = dataOf(response)
  if (data === undefined) return ''
  const text = objectText(shownData(elide ? elided(data) : data, response), quote, clear)
  return text === '{}' ? '' : `"data":${text}`
}

/** `data` of the envelope; the whole body of any other response, and of a batch with failed items. */
function dataOf({ outcome, results, reply }: ResponseEntry): Data | undefined {
  if (results) return asBody(reply)
  if (!(outcome instanceof Answer)) return outcome
  if (outcome.raw ?? outcome.bare ?? outcome.status !== 200) return asBody(reply)
  const { data, pem } = outcome
  if (pem !== undefined) return { ...data, [pem.name]: contentMembers(pem.text.content) }
  return data ?? undefined
}

function asBody({ status, headers, body }: Reply): Data {
  const type = headers[headers.indexOf('Content-Type') + 1]
  const whole = body instanceof Stream ? contentMembers(body.content) : { http_raw_body: body }
  return {
    ...(body.length === 0 ? {} : { http_content_type: type, ...whole }),
    http_status_code: status,
  }
}

/** `keys` and `key_info` by their length. */
function elided(data: Data): Data {
  const { keys, key_info: info } = data
  return {
    ...data,
    ...(Array.isArray(keys) ? { keys: keys.length } : {}),
    ...(typeof info === 'object' && info !== null ? { key_info: Object.keys(info).length } : {}),
  }
}

function authText(auth: Data, { quote, hide, hmacAccessor }: ResponseFormat): string {
  const accessor = typeof auth.accessor === 'string' ? auth.accessor : ''
  const members = joined([
    typeof auth.client_token === 'string' ? `"client_token":${quote(auth.client_token)}` : '',
    accessor === '' ? '' : `"accessor":${hmacAccessor ? quote(accessor) : JSON.stringify(accessor)}`,
    member('display_name', auth.display_name),
    member('policies', auth.policies),
    member('token_policies', auth.token_policies),
    member('metadata', auth.metadata),
    member('num_uses', auth.num_uses),
    member('entity_id', auth.entity_id),
    member('token_type', auth.token_type),
    member('token_ttl', auth.lease_duration),
    member('token_issue_time', auth.token_issue_time),
  ])
  return `"auth":{${hide(members)}}`
}

function headerLists(headers: Readonly<Record<string, string>>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
}
