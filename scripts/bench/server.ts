/** A server under load: its address, its request, and its cost so far. */
export interface Server {
  readonly url: string
  readonly request: LoadRequest
  /** Of all its processes since they started. */
  cpuMicroseconds(): number
}

/** The one request that the load consists of. */
export interface LoadRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Bodies of bytes, in hexadecimal, which take turns; `body` is undefined then. */
  readonly bodies?: readonly string[]
  /** The least average bytes of an answer with its head: reveals refusals that are successes of HTTP, but short. */
  readonly leastBytes?: number
  /** Whether every answer has to be a refusal. */
  readonly refused?: boolean
  /**
   * Requests differ, so many in turn: the eight zeros in the body count up to this number, then begin again. Digits are
   * valid base64, so that they may be part of such a value. Without a body `00-00-00-00` in the path counts.
   */
  readonly variants?: number
}
