import type { SignatureName } from '../../../crypto/signaturealgorithm.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { Transaction } from '../../../store/reader.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import type { CrlRow, Scope } from './tables.ts'

/** The shards of one count, each listing its part of the complete list's entries. */
export interface ShardSet {
  /** How many. */
  readonly of: number
  /** Where certificates say their shard is found: `{{shard}}` stands for its name. At least one. */
  readonly urls: readonly string[]
}

/** The list to build, its signer and its lifetime. The caller checks that the signer may sign lists. */
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
  /** The shards that come with a complete list; those of other counts are withdrawn. */
  readonly shards: readonly ShardSet[]
  /** Whether shards without new entries since the last complete list stay as they are. */
  readonly lacking?: boolean
  /** A revocation to be listed: a published list that takes it into account is as good as a new one. */
  readonly covering?: { readonly site: string; readonly seq: number } | undefined
  /**
   * The same target by the settings of the moment: a build that waited for others must not undo a change made
   * meanwhile. It may reject, which ends the build.
   */
  current?(): Promise<BuildTarget>
  /**
   * Rejects, which ends the build, if no issuer of the lists is left. Called in the transaction that publishes, which
   * follows every committed withdrawal of lists.
   */
  verify?(tx: Transaction): Promise<void>
}

/** The published complete list and delta after a build. */
export interface BuiltCrl {
  readonly complete: CrlRow
  readonly delta: CrlRow
}
