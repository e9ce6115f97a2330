import { type ApiError, unavailable } from '../errors.ts'
import { CKR } from './constants.ts'
import { StaleHandle } from './handle.ts'

/**
 * The consequence of a failed call:
 * - `session`  the session was no good, so the call never ran: repeat it on a new one
 * - `retry`    the token is short of something: repeat once a call that leaves nothing behind, else 503
 * - `stale`    the token is there and does not know the handle: fetch the key again
 * - `lost`     the token is gone or has forgotten us: 503 until it is initialised and logged in again
 * - `refuse`   the token rejects this input
 * - `bug`      ours: 500
 * - `doubt`    tokens use these codes for a bad tag, a tampered blob and a pulled cable alike: only asking the token
 *              tells, and it turns into `refuse` or `lost`
 */
export type Fate = 'session' | 'retry' | 'stale' | 'lost' | 'refuse' | 'bug' | 'doubt'

const members: Record<Exclude<Fate, 'bug'>, readonly (keyof typeof CKR)[]> = {
  session: ['SESSION_CLOSED', 'SESSION_HANDLE_INVALID', 'OPERATION_ACTIVE', 'OPERATION_NOT_INITIALIZED'],
  retry: [
    'CANCEL',
    'HOST_MEMORY',
    'DEVICE_MEMORY',
    'FUNCTION_CANCELED',
    'SESSION_COUNT',
    'TOKEN_RESOURCE_EXCEEDED',
    'OPERATION_CANCEL_FAILED',
  ],
  stale: [
    'KEY_HANDLE_INVALID',
    'OBJECT_HANDLE_INVALID',
    'WRAPPING_KEY_HANDLE_INVALID',
    'UNWRAPPING_KEY_HANDLE_INVALID',
  ],
  lost: [
    'DEVICE_REMOVED',
    'SLOT_ID_INVALID',
    'TOKEN_NOT_PRESENT',
    'TOKEN_NOT_RECOGNIZED',
    'USER_NOT_LOGGED_IN',
    'CRYPTOKI_NOT_INITIALIZED',
  ],
  doubt: ['GENERAL_ERROR', 'FUNCTION_FAILED', 'DEVICE_ERROR'],
  refuse: [
    'ACTION_PROHIBITED',
    'ARGUMENTS_BAD',
    'ATTRIBUTE_READ_ONLY',
    'ATTRIBUTE_SENSITIVE',
    'ATTRIBUTE_TYPE_INVALID',
    'ATTRIBUTE_VALUE_INVALID',
    'CURVE_NOT_SUPPORTED',
    'DATA_INVALID',
    'DATA_LEN_RANGE',
    'DOMAIN_PARAMS_INVALID',
    'ENCRYPTED_DATA_INVALID',
    'ENCRYPTED_DATA_LEN_RANGE',
    'FUNCTION_NOT_SUPPORTED',
    'FUNCTION_REJECTED',
    'KEY_EXHAUSTED',
    'KEY_FUNCTION_NOT_PERMITTED',
    'KEY_INDIGESTIBLE',
    'KEY_NOT_WRAPPABLE',
    'KEY_SIZE_RANGE',
    'KEY_TYPE_INCONSISTENT',
    'KEY_UNEXTRACTABLE',
    'MECHANISM_INVALID',
    'MECHANISM_PARAM_INVALID',
    'SIGNATURE_INVALID',
    'SIGNATURE_LEN_RANGE',
    'TEMPLATE_INCOMPLETE',
    'TEMPLATE_INCONSISTENT',
    'TOKEN_WRITE_PROTECTED',
    'UNWRAPPING_KEY_SIZE_RANGE',
    'UNWRAPPING_KEY_TYPE_INCONSISTENT',
    'WRAPPED_KEY_INVALID',
    'WRAPPED_KEY_LEN_RANGE',
    'WRAPPING_KEY_SIZE_RANGE',
    'WRAPPING_KEY_TYPE_INCONSISTENT',
  ],
}

const fates = new Map<number, Fate>(
  Object.entries(members).flatMap(([fate, names]) => names.map((name) => [CKR[name], fate as Fate] as const)),
)
const names = new Map<number, string>(Object.entries(CKR).map(([name, code]) => [code, `CKR_${name}`]))
const firstVendorCode = 0x80000000

/** The class of a CKR code; a vendor's own codes are doubtful, other unknown codes are bugs. */
export const fateOf = (code: number): Fate => fates.get(code) ?? (code >= firstVendorCode ? 'doubt' : 'bug')

const ckrName = (code: number): string => names.get(code) ?? `CKR 0x${code.toString(16)}`

/**
 * The CKR code of an error thrown by pkcs11js; undefined for any other error. Three of its functions throw the bare
 * native error, whose message ends in the number.
 */
export function ckrOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'number' && error.message.startsWith('CKR_')) return error.code
  const number = /^CKR_\w+:(\d+)$/.exec(error.message)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** An error without a stack trace, which costs more than a decryption: a client's input is enough to provoke one. */
class Untraced extends Error {
  constructor(message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** A failed call and its consequence, in a form that crosses threads. */
export class Failure extends Untraced {
  readonly fate: Fate
  readonly code: number

  constructor(fate: Fate, code: number, operation: string) {
    super(`${operation}: ${ckrName(code)}`)
    this.fate = fate
    this.code = code
  }
}

/** The token refused the input (bad tag, tampered blob, wrong length, missing mechanism). Callers word the error. */
export class HsmRefusal extends Untraced {
  /** CKR code, for the log: it never tells a client which step failed. */
  readonly code: number

  constructor(failure: Failure) {
    super(failure.message)
    this.name = ckrName(failure.code)
    this.code = failure.code
  }
}

/** The token refused the PIN, or would erase itself at the next wrong one. It is not tried again automatically. */
export class PinRefused extends Error {
  readonly reason: 'incorrect' | 'locked'

  constructor(reason: 'incorrect' | 'locked', text: string) {
    super(text)
    this.name = 'PinRefused'
    this.reason = reason
  }
}

export const tokenLost = (cause?: unknown): ApiError => unavailable('the HSM is not available', { cause })

/** The error for the caller of a failed operation; only `lost` requires the Hsm to act as well. */
export function outcome(failure: Failure): Error {
  switch (failure.fate) {
    case 'refuse':
      return new HsmRefusal(failure)
    case 'stale':
      return new StaleHandle(failure.message)
    case 'session':
    case 'retry':
      return unavailable('the HSM is short of resources', { cause: failure })
    case 'lost':
      return tokenLost(failure)
    default:
      Error.captureStackTrace(failure, outcome)
      return failure
  }
}
