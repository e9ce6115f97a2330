import type { MaybePromise } from '../route.ts'
import type { Stream } from '../stream.ts'

/** A request from the edge: read completely and not interpreted. */
export interface RawRequest {
  /** UUID, for the envelope and the log. */
  readonly id: string
  /** When its last byte was read, by the monotonic clock in milliseconds. */
  readonly receivedAt: number
  /** As on the request line: upper case, including PUT and unknown methods. */
  readonly method: string
  readonly rawPath: string
  /** Without the `?`. */
  readonly query: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer
  /** Empty, and the port 0, on a unix socket. */
  readonly remoteAddress: string
  readonly remotePort: number
  /** DER of the certificate that the TLS client presented; not verified. */
  readonly clientCertificate: Uint8Array | undefined
}

/** An answer ready to be written; the edge adds Content-Length and, on TLS, Strict-Transport-Security. */
export interface RawReply {
  readonly status: number
  /** Name, value, name, value … as node:http writes them fastest. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | Stream
  /** Whether the caller had a good token; set only for bodies longer than `longestShortBody`. */
  readonly forCaller?: boolean
}

/** Characters or bytes that a socket takes even if the client reads nothing; longer bodies could hold it for ever. */
export const longestShortBody = 16 * 1024

/**
 * Of a longer body each step takes milliseconds, such as its HMAC for the audit: others have their turn between two.
 */
const longBody = 1 << 20
export const isLong = ({ length }: { readonly length: number }): boolean => length > longBody

/** Bytes that anybody may send; no more of any body is read before its route and its credential are checked. */
export const strangerBodyBytes = 64 * 1024

/** The limit of a body, decided by the head of its request. */
export interface BodyLimit {
  /** The most bytes, if the route or the caller has a limit of its own. */
  readonly bytes: number | undefined
  /** Whether the credential is valid; `anybody` if none is needed, `undecided` if it could not be looked up. */
  readonly caller: 'known' | 'unknown' | 'anybody' | 'undecided'
}

/** All of request/ as the edge sees it. It never throws and never rejects. */
export interface Pipeline {
  /**
   * The limit of a request's body. Called with an empty body, before more than `strangerBodyBytes` of it are read;
   * absent, or undefined, where callers are not authenticated.
   */
  bodyLimit?(request: RawRequest): MaybePromise<BodyLimit | undefined>
  /**
   * Counts a request that is refused before it is handled, with an empty body; absent where nothing is counted.
   * @returns the answer in place of the refusal, if there are too many requests
   */
  refused?(request: RawRequest): MaybePromise<RawReply | undefined>
  handle(request: RawRequest): MaybePromise<RawReply>
}
