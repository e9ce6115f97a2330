import { ApiError } from '../../../errors.ts'

/** Why a role does not allow what was asked for. */
export interface Refusal {
  /** The reference's words, on which clients match. */
  readonly text: string
  /** The rule that said no, as a sentence. */
  readonly rule: string
  /** The nearest setting of the role that would allow it; absent when there is none. */
  readonly setting?: string | undefined
}

/** What one rule said of one value. */
export interface Check {
  /** What was looked at: common_name, dns_san, email_san, ip_san, uri_san, other_san, serial_number, user_id, key, ttl … */
  readonly subject: string
  readonly value: string
  readonly refusal?: Refusal | undefined
}

/**
 * 400: first what the reference says, then the rule and the setting.
 * @param role its name; '' where no role was asked for, whose settings are then no help
 */
export function refused({ text, rule, setting }: Refusal, role: string): ApiError {
  if (role === '') return new ApiError(400, [text, rule])
  const remedy = setting === undefined ? 'no setting of a role allows it' : `nearest setting: ${setting}`
  return new ApiError(400, [text, `role ${role}: ${rule}; ${remedy}`])
}
