import type { Caller } from '../route.ts'
import type { TokenRow } from './token.ts'

/**
 * A caller that signed in with a token, for one request. The credential and the token's row, which lookup-self and
 * renew-self repeat, are kept where logs, JSON and `inspect` cannot see them.
 */
export class TokenCaller implements Caller {
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

  /** The token when this request signed in, after its use was taken. */
  get row(): TokenRow {
    return this.#row
  }

  /** The credential a caller signed in with. */
  static credentialOf(caller: Caller): string {
    return TokenCaller.of(caller).#credential
  }

  /** The caller of a route that needs a token. @throws TypeError for any other caller: a fault of ours */
  static of(caller: Caller | undefined): TokenCaller {
    if (caller instanceof TokenCaller) return caller
    throw new TypeError('this caller did not sign in with a token')
  }
}
