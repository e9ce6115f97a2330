/**
 * A URL under which certificates were told to find the list of their shard. It counts for as long as such certificates may be about: a
 * shard names it whatever URLs and counts have come since (RFC 5280 section 5.2.5).
 */
export interface ShardPoint {
  /** How many shards there were. */
  readonly shards: number
  /** Uuid of the issuer whose own URL it was; '' for the mount's. */
  readonly issuer: string
  /** The one site whose certificates have it; '' for those of all. */
  readonly site: string
  /** A template: `{{shard}}`, and what else URLs may have. */
  readonly url: string
}

/** An issuer that was deleted while another one of its name and key went on: its certificates have its URLs. */
export interface DeletedIssuer {
  /** Uuid. */
  readonly id: string
  /** Hexadecimal. */
  readonly crlIssuer: string
  /** Numbers of shards that its certificates may have been told of. */
  readonly shards: readonly number[]
  /** The end of the last of its certificates, in milliseconds since 1970; absent where that is not known. */
  readonly until?: number
}

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
  /**
   * When the lists of all sites last ceased to stand for those of the sites, whose numbers are lower until they are built anew.
   * Milliseconds since 1970; absent before that happened.
   */
  readonly localSince?: number
  /** Lists that the certificates of an issuer are spread over, besides the one for all; 0 is none. */
  readonly shards: number
  /** Absent before there was any. */
  readonly points?: readonly ShardPoint[]
  /** Whose URLs shards name beside those of issuers; absent before there was any. */
  readonly deletedIssuers?: readonly DeletedIssuer[]
  /** Issuers that may have signed certificates which end later than they do; absent before shards were counted. */
  readonly outlived?: readonly string[]
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
