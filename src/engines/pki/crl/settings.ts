/**
 * A URL at which certificates say that the list of their shard is found. It stays as long as such certificates may
 * exist: a shard names it whatever the current URLs and counts (RFC 5280 section 5.2.5).
 */
export interface ShardPoint {
  /** How many shards there were. */
  readonly shards: number
  /** Uuid of the issuer whose own URL it was; '' for the mount's. */
  readonly issuer: string
  /** The one site whose certificates have it; '' for all sites. */
  readonly site: string
  /** A template with `{{shard}}` and the other variables of URLs. */
  readonly url: string
}

/** A deleted issuer whose name and key another issuer shares: its certificates still have its URLs. */
export interface DeletedIssuer {
  /** Uuid. */
  readonly id: string
  /** Hexadecimal. */
  readonly crlIssuer: string
  /** Shard counts that its certificates may refer to. */
  readonly shards: readonly number[]
  /** The end of the last of its certificates, in milliseconds since 1970; absent if unknown. */
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
   * When unified lists were last withdrawn from the paths of the sites' own lists, whose numbers are lower until
   * rebuilt. Milliseconds since 1970; absent before that happened.
   */
  readonly localSince?: number
  /** How many shards an issuer's certificates are spread over, besides the complete list; 0 for no shards. */
  readonly shards: number
  /** Absent before there was any. */
  readonly points?: readonly ShardPoint[]
  /** Deleted issuers whose URLs shards still name; absent before there was any. */
  readonly deletedIssuers?: readonly DeletedIssuer[]
  /** Issuers that may have signed certificates that outlive them; absent before any was recorded. */
  readonly outlived?: readonly string[]
}

/** Until a mount is configured otherwise. */
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
