import { after } from '../after.ts'
import type { Caller, MaybePromise } from '../route.ts'
import type { Acl } from './acl/compile.ts'
import { SignedIn } from './caller.ts'
import type { Policies } from './policies.ts'
import type { Tokens } from './tokens.ts'

/** Who a credential belongs to, and what it may do. */
export interface Identity {
  readonly caller: Caller
  readonly acl: Acl
}

/** What the request pipeline asks. */
export interface Authenticator {
  /**
   * Undefined for a credential that is unknown, expired, revoked or forged, without saying which. Answers without a
   * promise when all it needs is cached.
   */
  authenticate(credential: string): MaybePromise<Identity | undefined>
}

export function createAuthenticator({ tokens, policies }: { tokens: Tokens; policies: Policies }): Authenticator {
  return {
    authenticate: (credential) =>
      after(tokens.lookup(credential), (row) => {
        if (row === undefined) return undefined
        const caller = new SignedIn(row, credential)
        return after(policies.acl(row.policies), (acl) => ({ caller, acl }))
      }),
  }
}
