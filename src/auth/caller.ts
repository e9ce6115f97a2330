import type { Caller } from '../route.ts'
import type { TokenRow } from './token.ts'

/**
 * An HMAC of an accessor: it identifies a token to readers who know the accessor, and cannot be used to look one up.
 */
export type HashAccessor = (accessor: string) => string

/** Characters of a display name in a key's history. */
const longestName = 160

/**
 * A caller authenticated by a token, for one request. The credential and the token's row, which lookup-self and
 * renew-self repeat, are kept where logs, JSON and `inspect` cannot see them.
 */
export class TokenCaller implements Caller {
  readonly tokenId: string
  readonly accessor: string
  readonly displayName: string
  readonly policies: readonly string[]
  readonly #row: TokenRow
  readonly #credential: string
  readonly #hashAccessor: HashAccessor

  constructor(row: TokenRow, credential: string, hashAccessor: HashAccessor) {
    this.tokenId = row.id
    this.accessor = row.accessor
    this.displayName = row.displayName
    this.policies = row.policies
    this.#row = row
    this.#credential = credential
    this.#hashAccessor = hashAccessor
  }

  get maker(): string {
    return `${this.displayName.slice(0, longestName)} ${this.#hashAccessor(this.accessor)}`
  }

  /** The token when this request was authenticated, after its use was taken. */
  get row(): TokenRow {
    return this.#row
  }

  /** The credential that authenticated a caller. */
  static credentialOf(caller: Caller): string {
    return TokenCaller.of(caller).#credential
  }

  /** The caller of a route that needs a token. @throws TypeError for any other caller: a bug */
  static of(caller: Caller | undefined): TokenCaller {
    if (caller instanceof TokenCaller) return caller
    throw new TypeError('this caller was not authenticated by a token')
  }
}
