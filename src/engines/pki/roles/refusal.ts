import { ApiError } from '../../../errors.ts'

/** The reason why a role does not allow a request. */
export interface Refusal {
  /** The reference's words, which clients may match. */
  readonly text: string
  /** The rule that refused, as a sentence. */
  readonly rule: string
  /** The nearest setting of the role that would allow it; absent when no setting would. */
  readonly setting?: string | undefined
}

/** The result of one rule for one value. */
export interface Check {
  /**
   * The kind of the value: issuer, key, common_name, serial_number, dns_san, email_san, ip_san, uri_san, other_san,
   * user_id, validity, or certificate for the refusal of a certificate as a whole.
   */
  readonly subject: string
  readonly value: string
  readonly refusal?: Refusal | undefined
}

/**
 * 400: first the reference's words, then the rule and the setting.
 * @param role its name; '' if the request named no role, so that no setting can help
 */
export function refused({ text, rule, setting }: Refusal, role: string): ApiError {
  if (role === '') return new ApiError(400, [text, rule])
  const remedy = setting === undefined ? 'no role setting can allow it' : `nearest setting: ${setting}`
  return new ApiError(400, [text, `role ${role}: ${rule}; ${remedy}`])
}
