import { after } from '../after.ts'
import type { Caller, MaybePromise } from '../route.ts'
import type { Acl } from './acl/compile.ts'
import { SignedIn } from './caller.ts'
import type { Policies } from './policies.ts'
import { SPENT, type TokenRow } from './token.ts'
import type { Tokens } from './tokens.ts'

/** Who a credential belongs to, and what it may do. */
export interface Identity {
  readonly caller: Caller
  readonly acl: Acl
  /**
   * There when this request is the last one that its token is good for: removes the token, with what hangs on it. To be
   * awaited when the request has run, whatever became of it, before the answer.
   */
  end?(): Promise<void>
}

/** What the request pipeline asks. Both answer without a promise when all they need is cached. */
export interface Authenticator {
  /**
   * Signs a request in, which takes one use of a token that has a limited number of them. Undefined for a credential that
   * is unknown, expired, revoked, used up or forged, without saying which.
   */
  authenticate(credential: string): MaybePromise<Identity | undefined>
  /** Who it is, without a use taken: for what needs no token. */
  recognise(credential: string): MaybePromise<Identity | undefined>
}

export function createAuthenticator({ tokens, policies }: { tokens: Tokens; policies: Policies }): Authenticator {
  const identify = (credential: string, row: TokenRow | undefined): MaybePromise<Identity | undefined> => {
    if (row === undefined) return undefined
    const caller = new SignedIn(row, credential)
    return after(policies.acl(row.policies), (acl) =>
      row.numUses === SPENT ? { caller, acl, end: () => tokens.revoke(row.id) } : { caller, acl },
    )
  }
  return {
    authenticate: (credential) => after(tokens.use(credential), (row) => identify(credential, row)),
    recognise: (credential) => after(tokens.lookup(credential), (row) => identify(credential, row)),
  }
}
