import { LRUCache } from 'lru-cache'
import type { Logger } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { OnAlarm } from '../crl/alarm.ts'

/** The same alarm is reported once in this time, but counted each time. */
const repeatedMilliseconds = 3_600_000
const remembered = 1000

interface AlarmSinks {
  readonly log: Logger
  readonly metrics: Metrics
  /** Writes a line of the audit log that belongs to no request. */
  report(path: string, text: string): void
}

/** Reports changes of revocations or lists in the database to log, metrics and audit. */
export function alarmTo({ log, metrics, report }: AlarmSinks): OnAlarm {
  const help = 'Times that revocations or lists were found changed behind our back.'
  const counter = metrics.counter('strongroom.pki.crl.alarms', help)
  const told = new LRUCache<string, true>({ max: remembered, ttl: repeatedMilliseconds })
  return ({ crlIssuer, site, text }) => {
    counter.value++
    const key = `${crlIssuer} ${site ?? ''} ${text}`
    if (told.has(key)) return
    told.set(key, true)
    log.error({ crlIssuer, site, alarm: text }, 'revocations or lists were changed behind our back')
    report('pki/crl', `CRL issuer ${crlIssuer}${site === undefined ? '' : ` at site ${site}`}: ${text}`)
  }
}
