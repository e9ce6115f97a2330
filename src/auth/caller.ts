import type { Caller } from '../route.ts'
import type { TokenRow } from './token.ts'

/**
 * Who asks, for the time of one request. It carries the credential and the token's row where neither logs, JSON nor
 * `inspect` can see them, because auth/token's answers about oneself repeat them.
 */
export class SignedIn implements Caller {
  readonly tokenId: string
  readonly accessor: string
  readonly displayName: string
  readonly policies: readonly string[]
  readonly #row: TokenRow
  readonly #credential: string

  constructor(row: TokenRow, credential: string) {
    this.tokenId = row.id
    this.accessor = row.accessor
    this.displayName = row.displayName
    this.policies = row.policies
    this.#row = row
    this.#credential = credential
  }

  /** The token as it was when this request signed in, the use that it counts for taken off. */
  get row(): TokenRow {
    return this.#row
  }

  /** The credential a caller signed in with. */
  static credentialOf(caller: Caller): string {
    return SignedIn.of(caller).#credential
  }

  /** A caller of a route that needs a token. */
  static of(caller: Caller | undefined): SignedIn {
    if (caller instanceof SignedIn) return caller
    throw new TypeError('this caller did not sign in with a token')
  }
}
