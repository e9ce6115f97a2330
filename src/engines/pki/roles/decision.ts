import type { KeyUsage } from '../../../x509/extensions/keyusage.ts'
import type { AttributeValue } from '../../../x509/name.ts'
import type { Policy } from './policies.ts'
import type { CsrExtension } from './request.ts'
import type { Identity } from './template.ts'
import type { TimeLimits, Validity } from './validity.ts'

/** The caller of a request, its time, and the limits of the mount. */
export interface Circumstances extends TimeLimits {
  readonly identity: Identity
}

/** Subject alternative names, in the order in which a certificate lists them. */
export interface AlternativeNames {
  readonly other: readonly OtherName[]
  readonly dns: readonly string[]
  readonly email: readonly string[]
  /** 4 or 16 bytes each. */
  readonly ip: readonly Buffer[]
  readonly uri: readonly string[]
}

/** An otherName whose value is a UTF8String. */
export interface OtherName {
  readonly oid: string
  readonly value: string
}

/** The contents of a certificate that the role decides. */
export interface Decision {
  /** RDNs in the order of the certificate. */
  readonly subject: readonly (readonly AttributeValue[])[]
  readonly names: AlternativeNames
  /** The issuer's leaf_not_after_behavior may still shorten it. */
  readonly validity: Validity
  /** Empty for no such extension. */
  readonly keyUsages: readonly KeyUsage[]
  /** OIDs; empty for no such extension. */
  readonly extendedKeyUsages: readonly string[]
  readonly policies: readonly Policy[]
  /** Whether there is a Basic Constraints extension with CA:FALSE. */
  readonly basicConstraints: boolean
  readonly noRevAvail: boolean
  /** Extensions of the CSR that the role allows, unchanged. */
  readonly extensions: readonly CsrExtension[]
  readonly warnings: readonly string[]
}
