import { column, defineTable } from '../../../store/table.ts'
import type { TidyOrder } from './settings.ts'

export type TidyState = 'Running' | 'Finished' | 'Error' | 'Cancelling' | 'Cancelled'

/** The parts of a run, in their order. */
export const steps = [
  'certStore',
  'revokedCerts',
  'associations',
  'lists',
  'expiredIssuers',
  'legacyBundle',
  'revocationQueue',
  'crossClusterRevokedCerts',
] as const
export type Step = (typeof steps)[number]

/** What a run has done. */
export interface TidyCounts {
  readonly certStoreDeleted: number
  readonly revokedCertDeleted: number
  /** Revoked certificates that no issuer of the mount has signed. */
  readonly missingIssuerCert: number
  readonly revocationQueueDeleted: number
  readonly crossRevokedCertDeleted: number
  /** Stored certificates that are not what the columns beside them say: they stay. */
  readonly certStoreMismatched: number
}

export const noCounts: TidyCounts = {
  certStoreDeleted: 0,
  revokedCertDeleted: 0,
  missingIssuerCert: 0,
  revocationQueueDeleted: 0,
  crossRevokedCertDeleted: 0,
  certStoreMismatched: 0,
}

/** Where a step has come to: what lies behind this certificate is done. */
export interface Cursor {
  readonly site: string
  readonly notAfter: number
  readonly serial: string
}

/** The last run of a mount at a site, as it was when it last said so. Times are milliseconds. */
export interface TidyRun {
  readonly id: string
  readonly order: TidyOrder
  /** Whether nobody asked for it. */
  readonly automatic: boolean
  readonly state: TidyState
  readonly step: Step
  /** Null at the beginning of a step. */
  readonly cursor: Cursor | null
  /** Certificates that the step has looked at, of how many there were at its beginning. */
  readonly checked: number
  readonly total: number
  /** Whether lists were built in this run so that expired entries may leave them. */
  readonly carried: boolean
  readonly message: string | null
  readonly error: string | null
  readonly counts: TidyCounts
  readonly startedAt: number
  readonly finishedAt: number | null
  /** When a run that nobody asked for last ended. */
  readonly lastAutomaticAt: number | null
}

/** Not sealed: whatever a run removes is examined before, and never by what stands here alone. */
export const tidiesTable = defineTable(
  'pki_tidies',
  { mount: column.text(), site: column.text(), status: column.json<TidyRun>(), updatedAt: column.integer() },
  { sealed: false },
)

export const isActive = ({ state }: TidyRun): boolean => state === 'Running' || state === 'Cancelling'

/** Which mounts have settings of automatic tidying, unverified: what they say is read from the authority. */
export const automatic = defineTable(
  'pki_authorities',
  { id: column.text(), mount: column.text(), tidy: column.text().nullable() },
  { sealed: false },
)
