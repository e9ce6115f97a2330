import { badRequest } from '../errors.ts'
import type { SettingValue } from './settings.ts'

/** The origins from which browsers may send requests, and the headers they may use. */
export interface Cors {
  /** `*` alone allows all. */
  readonly origins: readonly string[]
  readonly headers: readonly string[]
}

/** Headers of Vault's clients, which are always allowed, in the reference's order. */
const standardHeaders =
  'Content-Type X-Requested-With X-Vault-AWS-IAM-Server-ID X-Vault-MFA X-Vault-No-Request-Forwarding X-Vault-Wrap-Format X-Vault-Wrap-TTL X-Vault-Policy-Override Authorization X-Vault-Token'.split(
    ' ',
  )
const most = 100
const [longestOrigin, longestHeader] = [255, 128]
const origin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#,]+$/i

/** The only name of its kind. */
export const corsName = 'cors'

/** Undefined while no origin is allowed. @param values the settings of kind `cors` */
export function corsOf(values: ReadonlyMap<string, SettingValue>): Cors | undefined {
  const value = values.get(corsName)
  return value === undefined ? undefined : (value as unknown as Cors)
}

/**
 * Reads the allowed origins and headers.
 * @throws ApiError 400 with the reference's texts
 */
export function readCors(origins: readonly string[], headers: readonly string[]): SettingValue {
  if (origins.length === 0) throw badRequest('at least one origin or the wildcard must be provided.')
  if (origins.includes('*') && origins.length > 1) {
    throw badRequest("to allow all origins the '*' must be the only value for allowed_origins")
  }
  const strange = origins.find((one) => one !== '*' && !origin.test(one))
  if (strange !== undefined) {
    throw badRequest(
      `allowed_origins: "${strange.slice(0, 100)}" is not an origin (scheme://host, with or without a port)`,
    )
  }
  const bad = headers.find((name) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name))
  if (bad !== undefined) throw badRequest(`allowed_headers: "${bad.slice(0, 100)}" is not the name of a header`)
  if (origins.length > most || headers.length > most) {
    throw badRequest(`allowed_origins and allowed_headers may have ${most} entries each`)
  }
  if (origins.some((one) => one.length > longestOrigin)) {
    throw badRequest(`allowed_origins: an origin has at most ${longestOrigin} characters`)
  }
  if (headers.some((one) => one.length > longestHeader)) {
    throw badRequest(`allowed_headers: a name has at most ${longestHeader} characters`)
  }
  return { origins, headers: [...new Set([...standardHeaders, ...headers])] }
}
