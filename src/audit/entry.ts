import type { Verdict } from '../auth/acl/decide.ts'
import { TokenCaller } from '../auth/caller.ts'
import type { TokenRow } from '../auth/token.ts'
import type { Caller, Mount, Outcome } from '../route.ts'
import type { AuditedHeader } from '../settings/auditedheaders.ts'
import type { Stream } from '../stream.ts'

/** Vault's names of operations. */
export type Operation = 'create' | 'read' | 'update' | 'delete' | 'list' | 'patch' | 'header' | 'help'

/** A request as it arrived: not yet routed, nor authorised. */
export interface AuditedRequest {
  readonly id: string
  readonly operation: Operation
  /** As policies see it. */
  readonly path: string
  readonly input: Readonly<Record<string, unknown>>
  /** The body or the query that the input was read from. */
  readonly sent: Uint8Array | string
  /** Empty without one. */
  readonly credential: string
  readonly remoteAddress: string
  readonly remotePort: number
  readonly clientCertificate: Uint8Array | undefined
  /** All that were sent, names in lower case, and those of them that the lines show. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly auditedHeaders?: readonly AuditedHeader[]
  readonly mount: (Mount & { readonly accessor?: string }) | undefined
}

/** A request when its line is written. */
export interface RequestEntry {
  readonly request: AuditedRequest
  /** The request's own, or `create` once the policies have told it from `update`. */
  readonly operation: Operation
  readonly caller: Caller | undefined
  readonly verdict: Verdict | undefined
  /** Whether it was refused before its line was written. */
  readonly isRefused: boolean
}

/** A reply as it goes out. */
export interface Reply {
  readonly status: number
  /** Name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | Stream
}

/** A response when its line is written. */
export interface ResponseEntry {
  /** Absent for a refusal. */
  readonly outcome?: Outcome
  readonly warnings: readonly string[]
  /** The reason of a refusal, else empty. */
  readonly error: string
  /** Whether a refusal carries results, as a batch with failed items does. */
  readonly results: boolean
  readonly reply: Reply
}

/** The token a caller signed in with; undefined for a caller without one. */
export const tokenOf = (caller: Caller | undefined): TokenRow | undefined =>
  caller instanceof TokenCaller ? caller.row : undefined
