import type { Clock } from '../../../clock.ts'
import { ApiError } from '../../../errors.ts'
import type { Job } from '../../../job.ts'
import type { Logger } from '../../../log.ts'
import type { Database } from '../../../store/database.ts'
import { walk } from '../../../store/pages.ts'
import type { Certificates } from '../certificates/certificates.ts'
import { jobOfSite } from '../site.ts'
import { queueTraces, type RevocationRequests } from './requests.ts'
import type { Revoker } from './revoker.ts'
import type { QueueRow } from './tables.ts'

interface AnsweringOptions {
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly site: string
  readonly certificates: Certificates
  readonly requests: RevocationRequests
  readonly revoker: Revoker
}

const everySeconds = 60
const pageSize = 64

/**
 * Requests between sites: the first job carries out the requests of other sites, the second removes answered requests.
 */
export function requestJobs(options: AnsweringOptions): readonly Job[] {
  const { database, clock, site, requests } = options
  const through = (job: string, signal: AbortSignal, fence: bigint) =>
    walk(database, database.unverified(queueTraces), { claim: { job, fence }, limit: pageSize, signal, clock })
  const answering = jobOfSite('answer revocation requests', site)
  const removal = 'remove answered revocation requests'
  return [
    {
      name: answering,
      everySeconds,
      async run(signal, fence) {
        for await (const page of through(answering, signal, fence)) {
          const done = await answer(options, await requests.open(page.map(({ id }) => id)))
          if (done.length > 0) await requests.confirm(done, { job: answering, fence })
        }
      },
    },
    {
      name: removal,
      everySeconds,
      async run(signal, fence) {
        for await (const page of through(removal, signal, fence)) {
          const ids = page.map(({ id }) => id)
          await requests.removeConfirmed(ids, { job: removal, fence })
        }
      },
    },
  ]
}

/** @returns the ids of the requests whose certificate is revoked */
async function answer(options: AnsweringOptions, rows: readonly QueueRow[]): Promise<string[]> {
  const done = await Promise.all(
    rows.map((row) =>
      revoke(options, row).catch((error: unknown) => {
        options.log.warn({ err: error, request: row.id }, 'a revocation requested by another site failed')
        return false
      }),
    ),
  )
  return rows.filter((_, index) => done[index]).map(({ id }) => id)
}

/** @returns false if this site does not have the certificate, or may not revoke it */
async function revoke({ database, site, certificates, revoker }: AnsweringOptions, row: QueueRow): Promise<boolean> {
  const found = await database.read((q) => certificates.read(q, row))
  if (found?.certificate.site !== site) return false
  try {
    const { state } = await revoker.bySerial({ uuid: row.mount }, Buffer.from(row.serial, 'hex'), { reason: null })
    return state === 'revoked'
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return false
    throw error
  }
}
