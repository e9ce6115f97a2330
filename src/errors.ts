/**
 * The only error whose text may reach a client. Any other error is a server fault: a 500 with a fixed text. `messages`
 * is sent as `{"errors":[…]}`; `cause` is for the log only and never leaves the server.
 */
export class ApiError extends Error {
  readonly status: number
  readonly messages: readonly string[]
  /** `list` is the reference's second style: `1 error occurred:\n\t* text\n\n` in one string. Clients match on both. */
  readonly style: 'plain' | 'list'
  readonly retryAfterSeconds: number | undefined
  /** Sent beside `errors` with the warnings of the request: the results of a batch in which items failed. */
  readonly data: Readonly<Record<string, unknown>> | undefined

  constructor(status: number, messages: string | readonly string[], options: ApiErrorOptions = {}) {
    const list = (typeof messages === 'string' ? [messages] : messages).map(inShort)
    super(list.join('; '), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.status = status
    this.messages = list
    this.style = options.style ?? 'plain'
    this.retryAfterSeconds = options.retryAfterSeconds
    this.data = options.data
  }
}

/** A text that quotes a caller's words is cut in the middle: clients may look for its end. */
const longestMessage = 4096
const inShort = (text: string): string =>
  text.length > longestMessage ? `${text.slice(0, 3000)}…${text.slice(-1000)}`.toWellFormed() : text

export interface ApiErrorOptions {
  readonly style?: 'plain' | 'list'
  readonly cause?: unknown
  readonly retryAfterSeconds?: number
  readonly data?: Readonly<Record<string, unknown>>
}

/** 400: the caller's mistake; `text` names the field or the broken rule. */
export const badRequest = (text: string, options?: ApiErrorOptions): ApiError => new ApiError(400, text, options)

/** 403 for a request with a valid token whose policies refuse it. */
export const denied = (text = 'permission denied'): ApiError => new ApiError(403, text, { style: 'list' })

/** 404 with an empty list: the answer to a read of a missing object. */
export const absent = (): ApiError => new ApiError(404, [])

/** 503: the token or the database cannot serve now; the request changed nothing and may be repeated. */
export const unavailable = (text: string, options?: ApiErrorOptions): ApiError =>
  new ApiError(503, text, { retryAfterSeconds: 1, ...options })

/** Whether token or database could not serve, so that nothing was learnt. */
export const isUnavailable = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 503

/** For `catch`, where what could not be done now is done later. @throws every other error */
export function unlessUnavailable(error: unknown): undefined {
  if (!isUnavailable(error)) throw error
}

/** The lines in `errors`, in the error's style. */
export function errorLines(error: ApiError): string[] {
  if (error.style === 'plain' || error.messages.length === 0) return [...error.messages]
  return [errorList(error.messages)]
}

/** The reference's text for a list of errors, some of which stand inside another text. */
export const errorList = (texts: readonly string[]): string =>
  `${texts.length === 1 ? '1 error' : `${texts.length} errors`} occurred:\n${texts.map((text) => `\t* ${text}\n`).join('')}\n`
