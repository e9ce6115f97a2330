import { X509Certificate } from 'node:crypto'
import type { Caller, Mount } from '../route.ts'
import { answerMembers } from './answer.ts'
import { type Asked, type Ended, type Known, tokenOf } from './asked.ts'
import type { Pieces } from './chain.ts'
import type { DeviceOptions } from './options.ts'
import { type Hasher, joined, member, objectText, plainly, type Quote } from './render.ts'

/** A caller's constant parts of every record. */
interface CallerText {
  readonly before: string
  /** What stands behind the verdict. */
  readonly behind: string
  /** Within `request`. */
  readonly token: string
}

/** A mount's constant parts. */
export interface MountText {
  readonly members: string
  readonly clearRequest: ReadonlySet<string>
  readonly clearResponse: ReadonlySet<string>
}

const nobody: CallerText = { before: '', behind: '"token_type":"default"', token: '' }
const nowhere: MountText = { members: '', clearRequest: new Set(), clearResponse: new Set() }

/**
 * Writes records in the form of the reference's audit/format.go for one device: what is secret as HMACs under the device's
 * key, what is empty left out. What is the same for every request of a token or a mount is made once for it.
 */
export class Scribe {
  readonly #options: DeviceOptions
  readonly #quote: Quote
  readonly #hash: (text: string) => string
  readonly #callers = new WeakMap<object, CallerText>()
  readonly #mounts = new WeakMap<Mount, MountText>()

  constructor(options: DeviceOptions, hasher: Hasher) {
    this.#options = options
    this.#hash = options.logRaw ? (text) => text : (text) => hasher.hash(text)
    // Hexadecimal needs no escaping.
    this.#quote = options.logRaw ? plainly : (text) => `"${hasher.hash(text)}"`
  }

  /** The members of a request's record that its answer's record repeats, as JSON text. */
  question(known: Known): string {
    const { asked, caller: who } = known
    const { credential, clientCertificate } = asked
    const caller = who ? this.#callerText(who, credential) : undefined
    const { before, behind } = caller ?? nobody
    const token = caller ? caller.token : credential && `"client_token":${this.#quote(credential)}`
    const mount = this.#mountText(asked.mount)
    const data = objectText(asked.input, this.#quote, mount.clearRequest)
    const auth = joined([before, policyResults(known), behind])
    const request = joined([
      `"id":"${asked.id}"`,
      `"operation":"${known.operation}"`,
      mount.members,
      token,
      '"namespace":{"id":"root"}',
      member('path', asked.path),
      data === '{}' ? '' : `"data":${data}`,
      member('remote_address', asked.remoteAddress),
      member('remote_port', asked.remotePort),
      clientCertificate ? member('client_certificate_serial_number', serialOf(clientCertificate)) : '',
    ])
    return `"auth":{${auth}},"request":{${request}}`
  }

  /** The record that proves a new device. */
  test(time: string, id: string): Pieces {
    const request = `{"id":"${id}","operation":"update","namespace":{"id":"root"},"path":"sys/audit/test"}`
    return this.request(time, `"auth":{"token_type":"default"},"request":${request}`, '')
  }

  /** The record that is written before a request is carried out. */
  request(time: string, question: string, error: string): Pieces {
    return [`{"time":"${time}","type":"request",`, question, errorMember(error)]
  }

  /** The record that is written before the answer goes out. */
  response(time: string, question: string, known: Known, ended: Ended): Pieces {
    const { members, clearResponse } = this.#mountText(known.asked.mount)
    const elide = this.#options.elideListResponses && known.operation === 'list'
    const { hmacAccessor } = this.#options
    const answer = answerMembers(ended, { quote: this.#quote, clear: clearResponse, elide, hmacAccessor })
    const response = joined([answer.auth, members, ...answer.rest])
    return [`{"time":"${time}","type":"response",`, question, `,"response":{${response}}${errorMember(ended.error)}`]
  }

  #callerText(caller: Caller, credential: string): CallerText {
    const row = tokenOf(caller)
    const known = this.#callers.get(row ?? caller)
    if (known) return known
    const token = `"client_token":${this.#quote(credential)}`
    const accessor = this.#options.hmacAccessor ? this.#hash(caller.accessor) : caller.accessor
    const text = {
      before: joined([
        token,
        member('accessor', accessor),
        member('display_name', caller.displayName),
        member('policies', caller.policies),
        member('token_policies', caller.policies),
      ]),
      behind: joined([
        member('metadata', row?.meta),
        member('remaining_uses', Math.max(row?.numUses ?? 0, 0)),
        '"token_type":"service"',
        member('token_ttl', row?.ttlSeconds),
        row ? `"token_issue_time":"${new Date(row.createdAt).toISOString()}"` : '',
      ]),
      token: joined([token, member('client_token_accessor', accessor)]),
    }
    this.#callers.set(row ?? caller, text)
    return text
  }

  #mountText(mount: Asked['mount']): MountText {
    if (mount === undefined) return nowhere
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

const errorMember = (error: string): string => (error === '' ? '' : `,"error":${JSON.stringify(error)}`)

/** Whether the policies said yes, and which: none is named for a path that none of them has a rule for. */
function policyResults({ verdict, caller }: Known): string {
  if (verdict === undefined) return ''
  if (!verdict.allowed) return '"policy_results":{"allowed":false}'
  const granting = (verdict.rule?.policies ?? caller?.policies ?? []).map(
    (name) => `{"name":${JSON.stringify(name)},"namespace_id":"root","type":"acl"}`,
  )
  return `"policy_results":{"allowed":true,"granting_policies":[${granting.join()}]}`
}

/** By the certificate of a connection: parsing costs as much as a request. */
const serials = new WeakMap<Uint8Array, string>()

/** Decimal, as the reference prints it. */
function serialOf(der: Uint8Array): string {
  const serial = serials.get(der) ?? BigInt(`0x${new X509Certificate(der).serialNumber}`).toString()
  serials.set(der, serial)
  return serial
}
