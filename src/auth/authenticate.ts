import { after } from '../after.ts'
import type { Caller, MaybePromise } from '../route.ts'
import type { Acl } from './acl/compile.ts'
import { type HashAccessor, TokenCaller } from './caller.ts'
import { memo } from './memo.ts'
import type { Policies } from './policies.ts'
import { spentUses, type TokenRow } from './token.ts'
import type { Tokens } from './tokens.ts'

/** The caller behind a credential, with its policies. */
export interface Identity {
  readonly caller: Caller
  readonly acl: Acl
  /**
   * Present when this request takes the token's last use: revokes the token with its leases. Await it after the request
   * has run, even if it failed, and before the answer.
   */
  end?(): Promise<void>
}

/** Authentication, for the request pipeline. Both return without a promise when everything needed is cached. */
export interface Authenticator {
  /**
   * Authenticates a request, which takes one use of a token whose uses are limited. Undefined for a credential that is
   * unknown, expired, revoked, used up or forged, without telling which.
   */
  authenticate(credential: string): MaybePromise<Identity | undefined>
  /** As authenticate, without taking a use: for routes that need no token. */
  recognise(credential: string): MaybePromise<Identity | undefined>
}

export interface AuthenticatorOptions {
  readonly tokens: Tokens
  readonly policies: Policies
  readonly hashAccessor: HashAccessor
}

/** Accessors whose HMACs are remembered. */
const hashesHeld = 1000

/**
 * Authentication by the tokens of this cluster. Tokens and policies come from the worker's caches, or else from the
 * database: while that cannot be asked, the methods fail with ApiError 503.
 */
export function createAuthenticator({ tokens, policies, ...options }: AuthenticatorOptions): Authenticator {
  const hashes = memo<string>(hashesHeld)
  const hashAccessor: HashAccessor = (accessor) => {
    const known = hashes.get(accessor)
    if (known !== undefined) return known
    const hash = options.hashAccessor(accessor)
    hashes.set(accessor, hash)
    return hash
  }
  const identify = (credential: string, row: TokenRow | undefined): MaybePromise<Identity | undefined> => {
    if (row === undefined) return undefined
    const caller = new TokenCaller(row, credential, hashAccessor)
    return after(policies.acl(row.policies), (acl) =>
      row.numUses === spentUses ? { caller, acl, end: () => tokens.revoke(row.id) } : { caller, acl },
    )
  }
  return {
    authenticate: (credential) => after(tokens.use(credential), (row) => identify(credential, row)),
    recognise: (credential) => after(tokens.lookup(credential), (row) => identify(credential, row)),
  }
}
