import type { Caller } from '../route.ts'
import type { TokenRow } from './token.ts'

/**
 * Who asks, for the time of one request. It carries the credential where neither logs, JSON nor `inspect` can see it,
 * because auth/token's answers about oneself repeat it.
 */
export class SignedIn implements Caller {
  readonly tokenId: string
  readonly accessor: string
  readonly displayName: string
  readonly policies: readonly string[]
  readonly #credential: string

  constructor(row: TokenRow, credential: string) {
    this.tokenId = row.id
    this.accessor = row.accessor
    this.displayName = row.displayName
    this.policies = row.policies
    this.#credential = credential
  }

  /** The credential a caller signed in with. */
  static credentialOf(caller: Caller): string {
    if (caller instanceof SignedIn) return caller.#credential
    throw new TypeError('this caller did not sign in with a token')
  }
}
