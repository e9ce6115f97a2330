import { X509Certificate } from 'node:crypto'
import { withCredentialsShown } from '../log/scrub.ts'
import type { Caller, Mount } from '../route.ts'
import type { Pieces } from './chain.ts'
import { shownInput } from './elision.ts'
import { type AuditedRequest, type RequestEntry, type ResponseEntry, tokenOf } from './entry.ts'
import type { DeviceOptions } from './options.ts'
import { type Hasher, joined, member, objectText, type Quote, quoteRaw } from './render.ts'
import { responseMembers } from './response.ts'

/** A caller's constant parts of every record. */
interface CallerText {
  /** Members of `auth` on either side of the policy results. */
  readonly before: string
  readonly after: string
  /** Members of `request`. */
  readonly token: string
}

/** A mount's constant parts. */
interface MountText {
  readonly members: string
  readonly clearRequest: ReadonlySet<string>
  readonly clearResponse: ReadonlySet<string>
}

/** Of the credentials in a text so many are HMACs, six times as long as the shortest: others would fill the disk. */
const mostHashed = 16

const noCaller: CallerText = { before: '', after: '"token_type":"default"', token: '' }
const noMount: MountText = { members: '', clearRequest: new Set(), clearResponse: new Set() }

/**
 * Formats records for one device as Vault's audit/format.go does: secrets as HMACs under the device's key, empty
 * members left out. Parts that are the same for every request of a token or a mount are formatted once.
 */
export class Formatter {
  readonly #options: DeviceOptions
  readonly #quote: Quote
  readonly #hash: (text: string) => string
  readonly #callers = new WeakMap<object, CallerText>()
  readonly #mounts = new WeakMap<Mount, MountText>()

  constructor(options: DeviceOptions, hasher: Hasher) {
    this.#options = options
    this.#hash = options.logRaw ? (text) => text : (text) => hasher.hash(text)
    // Hexadecimal needs no escaping.
    this.#quote = options.logRaw ? quoteRaw : (text) => `"${hasher.hash(text)}"`
  }

  /** The members of a request's record, which its response's record repeats, as JSON text. */
  requestMembers(entry: RequestEntry): string {
    const { request } = entry
    const { credential, clientCertificate } = request
    const caller = entry.caller ? this.#callerText(entry.caller, credential) : undefined
    const { before, after } = caller ?? noCaller
    const token = caller ? caller.token : credential && `"client_token":${this.#quote(credential)}`
    const mount = this.#mountText(request.mount)
    const data = objectText(shownInput(entry), this.#quote, mount.clearRequest)
    const auth = joined([before, this.#hidden(policyResults(entry)), after])
    const members = joined([
      `"id":"${request.id}"`,
      `"operation":"${entry.operation}"`,
      mount.members,
      token,
      '"namespace":{"id":"root"}',
      member('path', this.#hidden(request.path)),
      data === '{}' ? '' : `"data":${data}`,
      member('remote_address', request.remoteAddress),
      member('remote_port', request.remotePort),
      request.auditedHeaders?.length ? headersOf(request, this.#quote) : '',
      clientCertificate ? member('client_certificate_serial_number', serialOf(clientCertificate)) : '',
    ])
    return `"auth":{${auth}},"request":{${members}}`
  }

  /** The test record that a new device must take. */
  test(time: string, id: string): Pieces {
    const request = `{"id":"${id}","operation":"update","namespace":{"id":"root"},"path":"sys/audit/test"}`
    return this.request(time, `"auth":{"token_type":"default"},"request":${request}`, '')
  }

  /** The record written before a request is carried out. */
  request(time: string, requestText: string, error: string): Pieces {
    return [`{"time":"${time}","type":"request",`, requestText, this.#errorMember(error)]
  }

  /** The record written before the response goes out. */
  response(time: string, requestText: string, entry: RequestEntry, response: ResponseEntry): Pieces {
    const { members, clearResponse } = this.#mountText(entry.request.mount)
    const elide = this.#options.elideListResponses && entry.operation === 'list'
    const { hmacAccessor } = this.#options
    const hide = (shown: string) => this.#hidden(shown)
    const own = responseMembers(response, { quote: this.#quote, hide, clear: clearResponse, elide, hmacAccessor })
    const text = joined([own.auth, members, ...own.rest])
    return [
      `{"time":"${time}","type":"response",`,
      requestText,
      `,"response":{${text}}${this.#errorMember(response.error)}`,
    ]
  }

  /** The record of an event that no request caused. @param path its subject */
  alarm(
    time: string,
    { id, path, text }: { readonly id: string; readonly path: string; readonly text: string },
  ): Pieces {
    const members = joined([`"id":"${id}"`, '"namespace":{"id":"root"}', member('path', path), member('message', text)])
    return [`{"time":"${time}","type":"alarm","alarm":{${members}}`]
  }

  /** The record that ends a file when the path is reopened, or the one that begins the next. */
  boundary(
    time: string,
    event: 'closed' | 'opened',
    { id, file }: { readonly id: string; readonly file: string },
  ): Pieces {
    const members = joined([`"id":"${id}"`, '"namespace":{"id":"root"}', member('event', event), member('file', file)])
    return [`{"time":"${time}","type":"rotation","rotation":{${members}}`]
  }

  /** A text that is in clear, such as a path or a warning: credentials in it are HMACs like any other. */
  #hidden(text: string): string {
    if (this.#options.logRaw) return text
    let count = 0
    return withCredentialsShown(text, (found) => (++count > mostHashed ? '[redacted]' : this.#hash(found)))
  }

  #errorMember(error: string): string {
    return error === '' ? '' : `,"error":${JSON.stringify(this.#hidden(error))}`
  }

  #callerText(caller: Caller, credential: string): CallerText {
    const row = tokenOf(caller)
    const known = this.#callers.get(row ?? caller)
    if (known) return known
    const token = `"client_token":${this.#quote(credential)}`
    const accessor = this.#options.hmacAccessor ? this.#hash(caller.accessor) : caller.accessor
    const clear = {
      before: joined([
        token,
        member('accessor', accessor),
        member('display_name', caller.displayName),
        member('policies', caller.policies),
        member('token_policies', caller.policies),
      ]),
      after: joined([
        member('metadata', row?.meta),
        member('remaining_uses', Math.max(row?.numUses ?? 0, 0)),
        '"token_type":"service"',
        member('token_ttl', row?.ttlSeconds),
        row ? `"token_issue_time":"${new Date(row.createdAt).toISOString()}"` : '',
      ]),
      token: joined([token, member('client_token_accessor', accessor)]),
    }
    const text = { ...clear, before: this.#hidden(clear.before), after: this.#hidden(clear.after) }
    this.#callers.set(row ?? caller, text)
    return text
  }

  #mountText(mount: AuditedRequest['mount']): MountText {
    if (mount === undefined) return noMount
    const known = this.#mounts.get(mount)
    if (known) return known
    const text = {
      members: joined([
        member('mount_point', mount.path),
        member('mount_type', mount.type),
        member('mount_accessor', mount.accessor),
        member('mount_class', mount.path.startsWith('auth/') ? 'auth' : 'secret'),
      ]),
      clearRequest: names(mount.config.audit_non_hmac_request_keys),
      clearResponse: names(mount.config.audit_non_hmac_response_keys),
    }
    this.#mounts.set(mount, text)
    return text
  }
}

const names = (list: unknown): ReadonlySet<string> => new Set(Array.isArray(list) ? list : [])

/** The sent headers that are shown, each with its values, as in Vault. */
function headersOf({ headers = {}, auditedHeaders = [] }: AuditedRequest, quote: Quote): string {
  const shown = auditedHeaders.flatMap(({ name, hmac }) => {
    const values = [headers[name] ?? []].flat()
    const texts = values.map((value) => (hmac ? quote(value) : JSON.stringify(value)))
    return texts.length === 0 ? [] : [`${JSON.stringify(name)}:[${texts.join()}]`]
  })
  return shown.length === 0 ? '' : `"headers":{${shown.join()}}`
}

/** The decision and the granting policies; no policies are named for a path without a rule. */
function policyResults({ verdict, caller }: RequestEntry): string {
  if (verdict === undefined) return ''
  if (!verdict.allowed) return '"policy_results":{"allowed":false}'
  const granting = (verdict.rule?.policies ?? caller?.policies ?? []).map(
    (name) => `{"name":${JSON.stringify(name)},"namespace_id":"root","type":"acl"}`,
  )
  return `"policy_results":{"allowed":true,"granting_policies":[${granting.join()}]}`
}

/** By the connection's certificate: parsing one costs as much as a request. */
const serials = new WeakMap<Uint8Array, string>()

/** Decimal, as Vault prints it. */
function serialOf(der: Uint8Array): string {
  const known = serials.get(der)
  if (known !== undefined) return known
  // A client may present a certificate of its own making, with a negative number, which Node writes as `-01`.
  const [, sign = '', digits = ''] = /^(-?)(.*)$/.exec(new X509Certificate(der).serialNumber) ?? []
  const serial = sign + BigInt(`0x${digits}`)
  serials.set(der, serial)
  return serial
}
