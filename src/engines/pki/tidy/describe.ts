import { type TSchema, Type } from 'typebox'
import { data, orNull, timestamp, titled } from '../../../answers.ts'
import { showMilliseconds } from '../../../duration.ts'
import type { Data } from '../../../route.ts'
import { type AutoTidy, defaultAutoTidy, type Operation, operations, type TidyOrder } from './settings.ts'
import type { TidyCounts, TidyRun } from './tables.ts'

/** The numbers of stored certificates and revocations, if the mount maintains these counts. */
export interface Stored {
  readonly certificates: number | null
  readonly revoked: number | null
}

const orNullIn = <T extends TSchema>(names: readonly string[], schema: T) =>
  Object.fromEntries(names.map((name) => [name, orNull(schema)]))

/** An order of tidying; null before the first run. */
const orderAnswer = {
  ...orNullIn(Object.values(operations), Type.Boolean()),
  safety_buffer: orNull(Type.Integer()),
  issuer_safety_buffer: orNull(Type.Integer()),
  revocation_queue_safety_buffer: orNull(Type.Integer()),
  pause_duration: orNull(Type.String()),
  page_size: orNull(Type.Integer()),
}

const counts = [
  ...['cert_store_deleted_count', 'cert_store_mismatched_count', 'revoked_cert_deleted_count'],
  ...['missing_issuer_cert_count', 'revocation_queue_deleted_count', 'cross_revoked_cert_deleted_count'],
  ...['current_cert_store_count', 'current_revoked_cert_count'],
]

/** The members of describeStatus. */
export const tidyStatusAnswer = data(
  titled('TidyStatus', {
    ...orderAnswer,
    state: Type.String(),
    ...orNullIn(['error', 'message'], Type.String()),
    ...orNullIn(['time_started', 'time_finished', 'last_auto_tidy_finished'], timestamp),
    ...orNullIn(counts, Type.Integer()),
    internal_backend_uuid: Type.String(),
  }),
)

/** The members of describeAutoTidy. */
export const autoTidyAnswer = data(
  titled('AutoTidy', {
    enabled: Type.Boolean(),
    interval_duration: Type.Integer(),
    ...orderAnswer,
    maintain_stored_certificate_counts: Type.Boolean(),
    publish_stored_certificate_count_metrics: Type.Boolean(),
  }),
)

/** The state of tidying in answers: all null before the first run. */
export function describeStatus(mount: string, run: TidyRun | undefined, stored: Stored): Data {
  return {
    ...describeOrder(run?.order),
    state: run?.state ?? 'Inactive',
    error: run?.error ?? null,
    message: run?.message ?? null,
    time_started: when(run?.startedAt),
    time_finished: when(run?.finishedAt),
    last_auto_tidy_finished: when(run?.lastAutomaticAt),
    ...describeCounts(run?.counts),
    current_cert_store_count: stored.certificates,
    current_revoked_cert_count: stored.revoked,
    internal_backend_uuid: mount,
  }
}

const when = (milliseconds: number | null | undefined): string | null =>
  milliseconds === null || milliseconds === undefined ? null : new Date(milliseconds).toISOString()

function describeOrder(order: TidyOrder | undefined): Data {
  const names = Object.entries(operations) as [Operation, string][]
  return {
    ...Object.fromEntries(names.map(([operation, name]) => [name, order?.[operation] ?? null])),
    safety_buffer: order?.safetyBuffer ?? null,
    issuer_safety_buffer: order?.issuerSafetyBuffer ?? null,
    revocation_queue_safety_buffer: order?.revocationQueueSafetyBuffer ?? null,
    pause_duration: order === undefined ? null : showMilliseconds(Math.round(order.pauseDuration * 1000)),
    page_size: order?.pageSize ?? null,
  }
}

const describeCounts = (counts: TidyCounts | undefined): Data => ({
  cert_store_deleted_count: counts?.certStoreDeleted ?? null,
  cert_store_mismatched_count: counts?.certStoreMismatched ?? null,
  revoked_cert_deleted_count: counts?.revokedCertDeleted ?? null,
  missing_issuer_cert_count: counts?.missingIssuerCert ?? null,
  revocation_queue_deleted_count: counts?.revocationQueueDeleted ?? null,
  cross_revoked_cert_deleted_count: counts?.crossRevokedCertDeleted ?? null,
})

/** The settings of automatic tidying. */
export function describeAutoTidy(settings: AutoTidy | null): Data {
  const tidy = settings ?? defaultAutoTidy
  return {
    enabled: tidy.enabled,
    interval_duration: tidy.intervalDuration,
    ...describeOrder(tidy),
    maintain_stored_certificate_counts: tidy.maintainStoredCertificateCounts,
    publish_stored_certificate_count_metrics: tidy.publishStoredCertificateCountMetrics,
  }
}
