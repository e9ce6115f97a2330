import { badRequest } from '../errors.ts'
import { boolean, commaList, duration, raw, text } from '../field.ts'
import { compileFields, convertFields, normaliseNames } from './parse.ts'

/** `config` of a mount as it is stored and listed: the first three always, the others where they are set. */
export type Tuning = Readonly<Record<string, unknown>>

/** What a lease may last where a mount sets nothing: 768 hours. */
export const systemMaxTtlSeconds = 2_764_800

const fields = compileFields(
  {
    default_lease_ttl: duration({ about: 'How long leases of this mount last; 0 takes the server’s value.' }),
    max_lease_ttl: duration({ about: 'How long they may last at most; 0 takes the server’s value.' }),
    force_no_cache: boolean({ about: 'Accepted; what is cached here is never stale.' }),
    audit_non_hmac_request_keys: commaList({ about: 'Request fields that the audit log shows in clear.' }),
    audit_non_hmac_response_keys: commaList({ about: 'Answer fields that the audit log shows in clear.' }),
    listing_visibility: text({ about: 'Whether the mount shows without a token.', values: ['', 'hidden', 'unauth'] }),
    passthrough_request_headers: commaList({ about: 'Request headers that the engine sees.' }),
    allowed_response_headers: commaList({ about: 'Answer headers that the engine may set.' }),
    allowed_managed_keys: commaList({ about: 'Managed keys that this mount may use.' }),
    options: raw({ about: 'Sent by older clients here as well as beside config.' }),
  },
  [],
)

/**
 * Reads the `config` object of sys/mounts.
 * @throws {ApiError} 400 that names the field
 */
export function readTuning(input: unknown): Tuning {
  if (input !== undefined && input !== null && (typeof input !== 'object' || Array.isArray(input))) {
    throw badRequest('config must be an object')
  }
  const { options: _, ...given } = convertFields(fields, normaliseNames(fields, { ...input }).values)
  const tuning: Tuning = { default_lease_ttl: 0, max_lease_ttl: 0, force_no_cache: false, ...given }
  const limit = Number(tuning.max_lease_ttl) || systemMaxTtlSeconds
  if (Number(tuning.default_lease_ttl) > limit) {
    throw badRequest(`default_lease_ttl must not be longer than max_lease_ttl, which is ${limit} s here`)
  }
  return tuning
}
