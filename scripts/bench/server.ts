/** What is loaded: where it listens, what it is sent, and what it has cost so far. */
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
  /** Bytes that an answer has on average, at least, with its head: where refusals are successes of HTTP, and short. */
  readonly leastBytes?: number
  /**
   * Every request is another one of so many: the eight zeros in the body count up to it, and begin again. Digits are base64, so
   * that they may be a value in it. Without a body it is `00-00-00-00` in the path.
   */
  readonly variants?: number
}
