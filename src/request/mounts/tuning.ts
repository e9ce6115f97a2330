import { Type } from 'typebox'
import { strings } from '../../answers.ts'
import { badRequest } from '../../errors.ts'
import { boolean, commaList, raw, text } from '../../field.ts'
import { convert } from '../convert.ts'
import { compileFields, convertFields, normaliseNames } from '../parse.ts'

/** The members of a mount's settings. */
export const tuningAnswer = {
  default_lease_ttl: Type.Integer(),
  max_lease_ttl: Type.Integer(),
  force_no_cache: Type.Boolean(),
  audit_non_hmac_request_keys: Type.Optional(strings),
  audit_non_hmac_response_keys: Type.Optional(strings),
  listing_visibility: Type.Optional(Type.String()),
  passthrough_request_headers: Type.Optional(strings),
  allowed_response_headers: Type.Optional(strings),
  allowed_managed_keys: Type.Optional(strings),
}

/** `config` of a mount as stored and listed: the first three members always, the others only if set. */
export type Tuning = Readonly<Record<string, unknown>>

/** The longest and the usual duration of a lease unless the mount sets another: 768 hours. */
const systemMaxTtlSeconds = 2_764_800

const ttlWords = 'a duration, "" to leave it unchanged, "system" for the server’s value'

/** The settings of a new mount that can be changed later. TTLs are text, because they accept words too. */
export const tunable = {
  default_lease_ttl: text({ about: `Duration of leases of this mount: ${ttlWords}.` }),
  max_lease_ttl: text({ about: `Longest duration of its leases: ${ttlWords}.` }),
  audit_non_hmac_request_keys: commaList({ about: 'Request fields that the audit log shows in clear.' }),
  audit_non_hmac_response_keys: commaList({ about: 'Answer fields that the audit log shows in clear.' }),
  listing_visibility: text({ about: 'Whether the mount is listed without a token.', values: ['', 'hidden', 'unauth'] }),
  passthrough_request_headers: commaList({ about: 'Request headers that the engine sees.' }),
  allowed_response_headers: commaList({ about: 'Answer headers that the engine may set.' }),
  allowed_managed_keys: commaList({ about: 'Managed keys that this mount may use.' }),
}

const fields = compileFields(
  {
    ...tunable,
    force_no_cache: boolean({ about: 'Accepted without effect: caches here are never stale.' }),
    options: raw({ about: 'Older clients send it here as well as beside config.' }),
    plugin_version: text({ about: 'The command line sends it here. Not available; empty is accepted.' }),
  },
  [],
)

const untuned: Tuning = { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false }

/**
 * Reads the `config` object of sys/mounts.
 * @throws {ApiError} 400 naming the field
 */
export function readTuning(input: unknown): Tuning {
  if (input !== undefined && input !== null && (typeof input !== 'object' || Array.isArray(input))) {
    throw badRequest('config must be an object')
  }
  const read = convertFields(fields, normaliseNames(fields, { ...input }).values)
  const { options: _, plugin_version: version, ...settings } = read
  if (version) throw badRequest('plugin_version is not available: engines are built in')
  return retune(untuned, settings)
}

/**
 * The settings after a change: given ones are replaced, an empty list or text removes one.
 * @param changes values of `tunable` fields, converted; TTLs still as text
 * @throws {ApiError} 400 naming the field
 */
export function retune(before: Tuning, changes: Readonly<Record<string, unknown>>): Tuning {
  const after: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) continue
    if (name === 'default_lease_ttl' || name === 'max_lease_ttl') after[name] = ttlSeconds(name, value, before)
    else if (value === '' || (Array.isArray(value) && value.length === 0)) delete after[name]
    else after[name] = value
  }
  const limit = Number(after.max_lease_ttl) || systemMaxTtlSeconds
  if (Number(after.default_lease_ttl) > limit) {
    throw badRequest(`default_lease_ttl must not be longer than max_lease_ttl, which is ${limit} s here`)
  }
  return after
}

function ttlSeconds(name: string, value: unknown, before: Tuning): unknown {
  if (value === '') return before[name]
  if (value === 'system') return 0
  return convert('duration', value, (reason) => {
    throw badRequest(`Field validation failed: error converting input for field "${name}": ${reason}`)
  })
}

/** The settings with the effective TTLs: the server's if the mount has none of its own. */
export function effective(tuning: Tuning): Tuning {
  const max = Number(tuning.max_lease_ttl) || systemMaxTtlSeconds
  const usual = Number(tuning.default_lease_ttl) || Math.min(systemMaxTtlSeconds, max)
  return { ...tuning, default_lease_ttl: usual, max_lease_ttl: max }
}
