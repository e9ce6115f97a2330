import { column, defineTable } from '../../../store/table.ts'
import type { TidyOrder } from './settings.ts'

export type TidyState = 'Running' | 'Finished' | 'Error' | 'Cancelling' | 'Cancelled'

/** The steps of a run, in order. */
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

/** The results of a run. */
export interface TidyCounts {
  readonly certStoreDeleted: number
  readonly revokedCertDeleted: number
  /** Revocations whose issuer was unknown when the run reached them. */
  readonly missingIssuerCert: number
  /** Those among them whose issuer was found then. */
  readonly fixedIssuers: number
  readonly revocationQueueDeleted: number
  readonly crossRevokedCertDeleted: number
  /** Stored certificates that differ from their columns: they stay. */
  readonly certStoreMismatched: number
}

export const noCounts: TidyCounts = {
  certStoreDeleted: 0,
  revokedCertDeleted: 0,
  missingIssuerCert: 0,
  fixedIssuers: 0,
  revocationQueueDeleted: 0,
  crossRevokedCertDeleted: 0,
  certStoreMismatched: 0,
}

/** The place a step has reached: everything up to this certificate is done. */
export interface Cursor {
  readonly site: string
  readonly notAfter: number
  readonly serial: string
}

/** The last run of a mount at a site, in the state it last stored. Times are milliseconds. */
export interface TidyRun {
  readonly id: string
  readonly order: TidyOrder
  /** Whether it began automatically. */
  readonly automatic: boolean
  readonly state: TidyState
  readonly step: Step
  /** Null at the beginning of a step. */
  readonly cursor: Cursor | null
  /** Certificates that the step has checked, and their total at its beginning. */
  readonly checked: number
  readonly total: number
  /** Whether lists were built in this run so that expired entries may leave them. */
  readonly carried: boolean
  readonly message: string | null
  readonly error: string | null
  readonly counts: TidyCounts
  readonly startedAt: number
  readonly finishedAt: number | null
  /** The end of the last automatic run. */
  readonly lastAutomaticAt: number | null
}

/** Not sealed: everything that a run removes is checked first, and nothing is decided by this row alone. */
export const tidiesTable = defineTable(
  'pki_tidies',
  { mount: column.text(), site: column.text(), status: column.json<TidyRun>(), updatedAt: column.integer() },
  { sealed: false },
)

export const isActive = ({ state }: TidyRun): boolean => state === 'Running' || state === 'Cancelling'

/** Finds the mounts that have settings of automatic tidying, unverified: the settings are read from the authority. */
export const automatic = defineTable(
  'pki_authorities',
  { id: column.text(), mount: column.text(), tidy: column.text().nullable() },
  { sealed: false },
)
