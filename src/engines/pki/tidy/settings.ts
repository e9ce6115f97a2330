/** The work of a run of tidy, and the age of the entries it removes. Times are seconds. */
export interface TidyOrder {
  readonly certStore: boolean
  readonly revokedCerts: boolean
  readonly revokedCertIssuerAssociations: boolean
  readonly expiredIssuers: boolean
  readonly moveLegacyCaBundle: boolean
  readonly revocationQueue: boolean
  readonly crossClusterRevokedCerts: boolean
  readonly safetyBuffer: number
  readonly issuerSafetyBuffer: number
  readonly revocationQueueSafetyBuffer: number
  /** Pause between two certificates. */
  readonly pauseDuration: number
  /** Certificates read and removed at once, if there is no pause between them. */
  readonly pageSize: number
}

/** Settings of automatic tidying. */
export interface AutoTidy extends TidyOrder {
  readonly enabled: boolean
  /** From the end of a run to the beginning of the next one. */
  readonly intervalDuration: number
  readonly maintainStoredCertificateCounts: boolean
  readonly publishStoredCertificateCountMetrics: boolean
}

/** The operations of tidy, by the names of the requests' fields. */
export const operations = {
  certStore: 'tidy_cert_store',
  revokedCerts: 'tidy_revoked_certs',
  revokedCertIssuerAssociations: 'tidy_revoked_cert_issuer_associations',
  expiredIssuers: 'tidy_expired_issuers',
  moveLegacyCaBundle: 'tidy_move_legacy_ca_bundle',
  revocationQueue: 'tidy_revocation_queue',
  crossClusterRevokedCerts: 'tidy_cross_cluster_revoked_certs',
} as const satisfies Partial<Record<keyof TidyOrder, string>>
export type Operation = keyof typeof operations

const hour = 3600

export const defaultOrder: TidyOrder = {
  certStore: false,
  revokedCerts: false,
  revokedCertIssuerAssociations: false,
  expiredIssuers: false,
  moveLegacyCaBundle: false,
  revocationQueue: false,
  crossClusterRevokedCerts: false,
  safetyBuffer: 72 * hour,
  issuerSafetyBuffer: 8760 * hour,
  revocationQueueSafetyBuffer: 48 * hour,
  pauseDuration: 0,
  pageSize: 1000,
}

/** For a mount without settings. */
export const defaultAutoTidy: AutoTidy = {
  ...defaultOrder,
  enabled: false,
  intervalDuration: 12 * hour,
  maintainStoredCertificateCounts: false,
  publishStoredCertificateCountMetrics: false,
}

/** Whether an order selects any operation. */
export const asksAnything = (order: TidyOrder): boolean =>
  (Object.keys(operations) as Operation[]).some((operation) => order[operation])
