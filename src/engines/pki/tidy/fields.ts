import type { Static } from 'typebox'
import { Type } from 'typebox'
import { readMilliseconds } from '../../../duration.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, duration, integer, text } from '../../../field.ts'
import {
  type AutoTidy,
  asksAnything,
  defaultAutoTidy as initial,
  type Operation,
  operations,
  type TidyOrder,
} from './settings.ts'

/** The fields that select what is tidied, for a single run and for automatic ones. */
const orderFields = {
  tidy_cert_store: boolean({ about: 'Whether expired certificates are removed.', initial: false }),
  tidy_revoked_certs: boolean({
    about: 'Whether revocations of expired certificates are removed, also from the lists.',
    aliases: ['tidy_revocation_list'],
    initial: false,
  }),
  tidy_revoked_cert_issuer_associations: boolean({
    about: 'Whether unknown issuers of revoked certificates are looked up.',
    initial: false,
  }),
  tidy_expired_issuers: boolean({
    about: 'Whether expired issuers are removed, but not the default one; keys stay.',
    initial: false,
  }),
  tidy_move_legacy_ca_bundle: boolean({
    about: 'Accepted as in Vault; there is no legacy CA bundle here.',
    initial: false,
  }),
  tidy_revocation_queue: boolean({
    about: 'Whether revocation requests that no site confirmed are removed.',
    initial: false,
  }),
  tidy_cross_cluster_revoked_certs: boolean({
    about: 'Whether revocations of other sites are removed once their certificates have expired.',
    initial: false,
  }),
  safety_buffer: duration({
    about: 'Time between the end of a certificate and its removal.',
    initial: initial.safetyBuffer,
  }),
  issuer_safety_buffer: duration({
    about: 'Time between the end of an issuer and its removal.',
    initial: initial.issuerSafetyBuffer,
  }),
  revocation_queue_safety_buffer: duration({
    about: 'Age at which a revocation request is removed.',
    initial: initial.revocationQueueSafetyBuffer,
  }),
  pause_duration: text({ about: 'Pause after each certificate, such as "500ms".', initial: '0s' }),
  page_size: integer({
    about: 'Certificates read and removed in one step.',
    initial: initial.pageSize,
  }),
}

export const tidyBody = Type.Object(orderFields)
export type TidyFields = Static<typeof tidyBody>

export const autoTidyBody = Type.Object({
  ...orderFields,
  enabled: boolean({ about: 'Whether the mount is tidied automatically.', initial: false }),
  interval_duration: duration({
    about: 'Time between the end of a run and the beginning of the next.',
    initial: initial.intervalDuration,
  }),
  maintain_stored_certificate_counts: boolean({
    about: 'Whether tidy-status shows the numbers of stored certificates and revocations.',
    initial: false,
  }),
  publish_stored_certificate_count_metrics: boolean({
    about: 'Whether these counts are also published as metrics.',
    initial: false,
  }),
})
export type AutoTidyFields = Static<typeof autoTidyBody>

const everyOperation = Object.values(operations).join(' / ')

/** The advice for a request that selects nothing. */
export const nothingToDo = `Enable at least one tidy operation to be run (${everyOperation}).`

const buffers = {
  safetyBuffer: 'safety_buffer',
  issuerSafetyBuffer: 'issuer_safety_buffer',
  revocationQueueSafetyBuffer: 'revocation_queue_safety_buffer',
} as const
const smallestPage = 5

/** The order of a request for a run. @throws ApiError 400 */
export function orderOf(fields: TidyFields): TidyOrder {
  for (const name of Object.values(buffers))
    if (fields[name] === 0) throw badRequest(`${name} must be greater than zero`)
  if ((fields.page_size ?? smallestPage) < smallestPage) throw badRequest('page_size must be greater than five')
  const { enabled, intervalDuration, maintainStoredCertificateCounts, publishStoredCertificateCountMetrics, ...none } =
    initial
  return changed(none, fields, 'Error parsing pause_duration')
}

/** The settings after a request: absent fields stay unchanged. @throws ApiError 400 */
export function autoTidyOf(before: AutoTidy, fields: AutoTidyFields): AutoTidy {
  for (const name of Object.values(buffers))
    if (fields[name] === 0) throw badRequest(`given ${name} must be at least one second; got: 0`)
  if ((fields.page_size ?? smallestPage) < smallestPage) throw badRequest('page_size must be at least 5')
  const after: AutoTidy = {
    ...changed(before, fields, 'unable to parse given pause_duration'),
    enabled: fields.enabled ?? before.enabled,
    intervalDuration:
      fields.interval_duration === 0 ? initial.intervalDuration : (fields.interval_duration ?? before.intervalDuration),
    maintainStoredCertificateCounts:
      fields.maintain_stored_certificate_counts ?? before.maintainStoredCertificateCounts,
    publishStoredCertificateCountMetrics:
      fields.publish_stored_certificate_count_metrics ?? before.publishStoredCertificateCountMetrics,
  }
  if (after.enabled && !asksAnything(after)) {
    throw badRequest(`Auto-tidy enabled but no tidy operations were requested. ${nothingToDo}`)
  }
  if (after.publishStoredCertificateCountMetrics && !after.maintainStoredCertificateCounts) {
    throw badRequest(
      'Can not publish a running storage metrics count to metrics without first maintaining that count.  Enable `maintain_stored_certificate_counts` to enable `publish_stored_certificate_count_metrics`.',
    )
  }
  return after
}

/** @param wrongPause the beginning of the refusal of an invalid pause */
function changed<T extends TidyOrder>(before: T, fields: TidyFields, wrongPause: string): T {
  const selected = Object.entries(operations).map(([operation, name]) => [
    operation,
    fields[name] ?? before[operation as Operation],
  ])
  const { pause_duration: pause } = fields
  return {
    ...before,
    ...Object.fromEntries(selected),
    safetyBuffer: fields.safety_buffer ?? before.safetyBuffer,
    issuerSafetyBuffer: fields.issuer_safety_buffer ?? before.issuerSafetyBuffer,
    revocationQueueSafetyBuffer: fields.revocation_queue_safety_buffer ?? before.revocationQueueSafetyBuffer,
    pauseDuration: pause === undefined ? before.pauseDuration : pauseOf(pause, wrongPause),
    pageSize: fields.page_size ?? before.pageSize,
  }
}

/** Seconds. @throws ApiError 400 */
function pauseOf(text: string, wrong: string): number {
  if (/^-.*[1-9]/.test(text.trim())) throw badRequest('received invalid, negative pause_duration')
  const refuse = (reason: string) => {
    throw badRequest(`${wrong}: ${reason}`)
  }
  return readMilliseconds(text, refuse) / 1000
}
