import type { SignatureName } from '../../../crypto/signaturealgorithm.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import type { CrlRow, Scope } from './tables.ts'

/** Lists over which the entries are spread besides the complete one, each of which lists those of its shard. */
export interface ShardSet {
  /** How many. */
  readonly of: number
  /** Under which certificates are told to find their shard: `{{shard}}` stands for its name. At least one. */
  readonly urls: readonly string[]
}

/** What to build, by whom it is signed, and how long it lasts. Who may sign lists is for the caller to know. */
export interface BuildTarget {
  /** Uuid. */
  readonly mount: string
  /** Hexadecimal (`crlIssuerOf`). */
  readonly crlIssuer: string
  /** Of this node's site, or of all. */
  readonly scope: Scope
  /** A complete list comes with an empty delta of its number (RFC 5280 section 5.2.4). */
  readonly kinds: 'complete' | 'delta'
  readonly signer: CertificationSigner
  readonly algorithm: SignatureName
  /** The signer's. */
  readonly certificate: Certificate
  readonly expiryMilliseconds: number
  /** Lists without entries. */
  readonly disabled: boolean
  /** What else comes with a complete list; shards of other counts are withdrawn. */
  readonly shards: readonly ShardSet[]
  /** Whether shards to which nothing came since the last complete list stay as they are. */
  readonly lacking?: boolean
  /** A revocation to be listed: a published list that takes it into account is as good as a new one. */
  readonly covering?: { readonly site: string; readonly seq: number } | undefined
  /**
   * The same target by the settings of the moment: a build that waited for others must not bring back what has changed meanwhile.
   * It may reject, which ends the build.
   */
  current?(): Promise<BuildTarget>
  /**
   * Rejects, which ends the build, when by now the lists are nobody's: asked in the transaction that publishes, which comes after
   * every withdrawal of lists that has been committed.
   */
  verify?(tx: Transaction): Promise<void>
}

/** The complete list and the delta that are out after a build. */
export interface BuiltCrl {
  readonly complete: CrlRow
  readonly delta: CrlRow
}
