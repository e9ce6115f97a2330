/**
 * The one error that may cross to a client. Everything else that is thrown is a fault of ours: a 500 with a fixed text.
 * `messages` goes out as `{"errors":[…]}`; `cause` is for the log only and never leaves the server.
 */
export class ApiError extends Error {
  readonly status: number
  readonly messages: readonly string[]
  /** `list` is the reference's second style: `1 error occurred:\n\t* text\n\n` in one string. Clients match on both. */
  readonly style: 'plain' | 'list'
  readonly retryAfterSeconds: number | undefined
  readonly warnings: readonly string[]
  /** Sent beside `errors`, e.g. the results of a batch in which every item failed. */
  readonly data: Readonly<Record<string, unknown>> | undefined

  constructor(status: number, messages: string | readonly string[], options: ApiErrorOptions = {}) {
    const list = typeof messages === 'string' ? [messages] : messages
    super(list.join('; '), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.status = status
    this.messages = list
    this.style = options.style ?? 'plain'
    this.retryAfterSeconds = options.retryAfterSeconds
    this.warnings = options.warnings ?? []
    this.data = options.data
  }
}

export interface ApiErrorOptions {
  readonly style?: 'plain' | 'list'
  readonly cause?: unknown
  readonly retryAfterSeconds?: number
  readonly warnings?: readonly string[]
  readonly data?: Readonly<Record<string, unknown>>
}

/** 400: the caller's mistake; `text` names the field or the rule that was broken. */
export const badRequest = (text: string, options?: ApiErrorOptions): ApiError => new ApiError(400, text, options)

/** 403 for a request whose token is good and whose policies say no. */
export const denied = (text = 'permission denied'): ApiError => new ApiError(403, text, { style: 'list' })

/** 404 with an empty list: the answer to a read of something absent. */
export const absent = (): ApiError => new ApiError(404, [])

/** 503: the token or the database cannot serve now; the request changed nothing and may be repeated. */
export const unavailable = (text: string, options?: ApiErrorOptions): ApiError =>
  new ApiError(503, text, { retryAfterSeconds: 1, ...options })

/** The lines a client reads in `errors`, in the style the error asks for. */
export function errorLines(error: ApiError): string[] {
  if (error.style === 'plain' || error.messages.length === 0) return [...error.messages]
  const count = error.messages.length
  const head = count === 1 ? '1 error occurred:' : `${count} errors occurred:`
  return [`${head}\n${error.messages.map((text) => `\t* ${text}\n`).join('')}\n`]
}
