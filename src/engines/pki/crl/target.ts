import type { SignatureName } from '../../../crypto/signaturealgorithm.ts'
import type { CertificationSigner } from '../../../keys/use/certification.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import type { CrlRow, Scope } from './tables.ts'

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
  /** A revocation to be listed: a published list that takes it into account is as good as a new one. */
  readonly covering?: { readonly site: string; readonly seq: number } | undefined
  /**
   * The same target by the settings of the moment: a build that waited for others must not bring back what has changed meanwhile.
   * It may reject, which ends the build.
   */
  current?(): Promise<BuildTarget>
}

/** The lists that are out after a build. */
export interface BuiltCrl {
  readonly complete: CrlRow
  readonly delta: CrlRow
}
