import type { MaybePromise } from '../route.ts'
import type { Stream } from '../stream.ts'

/** A request as the edge hands it over: read completely, nothing of it interpreted. */
export interface RawRequest {
  /** UUID, for the envelope and the log. */
  readonly id: string
  /** As on the request line: upper case, PUT and unknown methods included. */
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
  /** DER of the certificate that the TLS client presented, not verified against anything. */
  readonly clientCertificate: Uint8Array | undefined
}

/** An answer ready to be written; the edge adds Content-Length and, on TLS, Strict-Transport-Security. */
export interface RawReply {
  readonly status: number
  /** Name, value, name, value … as node:http writes them fastest. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | Stream
}

/** Bytes that anybody may send to a route that takes bytes; no more of any body is read before its route is asked. */
export const strangerBodyBytes = 64 * 1024

/** The whole of request/ to the edge. It never throws and never rejects. */
export interface Pipeline {
  /**
   * The most bytes that the body of a request may have, where its route has a limit of its own. Asked with an empty body,
   * before more than `strangerBodyBytes` of it are read; absent where no route has one.
   */
  bodyLimit?(request: RawRequest): MaybePromise<number | undefined>
  handle(request: RawRequest): MaybePromise<RawReply>
}
