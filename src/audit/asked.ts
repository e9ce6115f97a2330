import type { Verdict } from '../auth/acl/decide.ts'
import { SignedIn } from '../auth/caller.ts'
import type { TokenRow } from '../auth/token.ts'
import type { Caller, Mount, Outcome } from '../route.ts'

/** The reference's words for what a request does. */
export type Operation = 'create' | 'read' | 'update' | 'delete' | 'list' | 'patch' | 'header' | 'help'

/** A request as it came, before anybody looked whether it exists or is allowed. */
export interface Asked {
  readonly id: string
  readonly operation: Operation
  /** As policies see it. */
  readonly path: string
  readonly input: Readonly<Record<string, unknown>>
  /** Empty when none was sent. */
  readonly credential: string
  readonly remoteAddress: string
  readonly remotePort: number
  readonly clientCertificate: Uint8Array | undefined
  readonly mount: (Mount & { readonly accessor?: string }) | undefined
}

/** What is known of a request when its line is written. */
export interface Known {
  readonly asked: Asked
  /** Where it is known better than when the request came. */
  readonly operation: Operation
  readonly caller: Caller | undefined
  readonly verdict: Verdict | undefined
}

/** The answer as it goes out. */
export interface Reply {
  readonly status: number
  /** Name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array
}

/** How a request ended. */
export interface Ended {
  /** What was returned; absent where it was refused. */
  readonly outcome?: Outcome
  readonly warnings: readonly string[]
  /** Why it was refused; empty where it was not. */
  readonly error: string
  /** Whether a refusal carries results, as a batch with failed items does. */
  readonly results: boolean
  readonly reply: Reply
}

/** The token a caller signed in with; absent for callers that are made otherwise. */
export const tokenOf = (caller: Caller | undefined): TokenRow | undefined =>
  caller instanceof SignedIn ? caller.row : undefined
