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
}
