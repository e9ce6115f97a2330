import { badRequest } from '../errors.ts'
import type { SettingValue } from './settings.ts'

/** A request header shown in audit lines. */
export interface AuditedHeader {
  /** In lower case. */
  readonly name: string
  readonly hmac: boolean
}

const most = 100

/** @param values the settings of kind `audited-header` */
export const auditedHeaders = (values: ReadonlyMap<string, SettingValue>): readonly AuditedHeader[] =>
  [...values].map(([name, { hmac }]) => ({ name, hmac: hmac === true }))

/**
 * Checks a header to be audited.
 * @param others the headers that are already audited
 * @throws ApiError 400
 */
export function checkAuditedHeader(name: string, others: readonly AuditedHeader[]): void {
  if (!/^[\w!#$%&'*+.^`|~-]{1,128}$/.test(name))
    throw badRequest('the name of a header must be valid and have at most 128 characters')
  if (name === 'x-vault-token' || name === 'authorization') {
    throw badRequest(`the header ${name} carries a credential, which is recorded as client_token`)
  }
  if (others.length >= most && !others.some((other) => other.name === name)) {
    throw badRequest(`at most ${most} headers are audited`)
  }
}
