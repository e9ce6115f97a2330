/** A request that is being answered, in a form that crosses processes. */
export interface InFlightRequest {
  /** UUID, as in the envelope of its answer and in the log. */
  readonly id: string
  /** When its last byte was read; milliseconds since the Unix epoch. */
  readonly startedAt: number
  /** `ADDRESS:PORT`; empty on a unix socket. */
  readonly client: string
  /** Canonical, its names folded, without query and credentials. */
  readonly path: string
  readonly method: string
  /** The reference's id for tokens without an entity, shared by tokens of the same policies; empty before sign-in. */
  readonly clientId: string
}

/** Requests in one answer. */
export const mostTold = 1000

/** The requests that have taken longest, from several lists. */
export const longestUnderWay = (lists: readonly (readonly InFlightRequest[])[]): readonly InFlightRequest[] =>
  lists
    .flat()
    .sort((one, other) => one.startedAt - other.startedAt)
    .slice(0, mostTold)
