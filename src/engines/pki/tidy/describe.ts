import { showMilliseconds } from '../../../duration.ts'
import type { Data } from '../../../route.ts'
import { type AutoTidy, defaultAutoTidy, type Operation, operations, type TidyOrder } from './settings.ts'
import type { TidyCounts, TidyRun } from './tables.ts'

/** How many certificates and revocations are stored, where the mount maintains these counts. */
export interface Stored {
  readonly certificates: number | null
  readonly revoked: number | null
}

/** The state of tidying as its routes answer it: before the first run all is null. */
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

/** Automatic tidying as it is configured. */
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
