/** How a mount's revocation lists and OCSP answers are made. Durations are kept as they were given: `72h`. */
export interface CrlSettings {
  readonly expiry: string
  readonly disable: boolean
  readonly ocspDisable: boolean
  readonly ocspExpiry: string
  readonly autoRebuild: boolean
  readonly autoRebuildGracePeriod: string
  readonly enableDelta: boolean
  readonly deltaRebuildInterval: string
  readonly allowExpiredCertRevocation: boolean
  readonly crossClusterRevocation: boolean
  readonly unifiedCrl: boolean
  readonly unifiedCrlOnExistingPaths: boolean
  /** Lists that the certificates of an issuer are spread over; 0 is one for all. */
  readonly shards: number
}

/** Of a mount that never said anything else. */
export const defaultCrlSettings: CrlSettings = {
  expiry: '72h',
  disable: false,
  ocspDisable: false,
  ocspExpiry: '12h',
  autoRebuild: false,
  autoRebuildGracePeriod: '12h',
  enableDelta: false,
  deltaRebuildInterval: '15m',
  allowExpiredCertRevocation: false,
  crossClusterRevocation: false,
  unifiedCrl: false,
  unifiedCrlOnExistingPaths: false,
  shards: 0,
}
