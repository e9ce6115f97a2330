/** What a run of tidy removes, and how old it must be. Times are seconds. */
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
  readonly pauseDuration: number
  readonly pageSize: number
}

/** Tidying by itself. */
export interface AutoTidy extends TidyOrder {
  readonly enabled: boolean
  /** From the end of a run to the beginning of the next one. */
  readonly intervalDuration: number
  readonly maintainStoredCertificateCounts: boolean
  readonly publishStoredCertificateCountMetrics: boolean
}
