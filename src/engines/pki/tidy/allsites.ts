import { unavailable } from '../../../errors.ts'
import type { Claim } from '../../../job.ts'
import { column, defineTable } from '../../../store/table.ts'
import { queueTable } from '../revocation/tables.ts'
import type { TidyDeps } from './deps.ts'
import { lastEnd, type Part, portionOf, type Work } from './part.ts'
import type { EndedRevocations } from './revoked.ts'

/** The columns of revocations and of the queue that indexes contain. */
const siteTraces = defineTable('pki_revocations', { mount: column.text(), site: column.text() }, { sealed: false })
const queueTraces = defineTable(
  'pki_revocation_queue',
  { id: column.text(), mount: column.text(), serial: column.hex(), site: column.text() },
  { sealed: false },
)

const leaseSeconds = 60

interface Turn extends Claim {
  end(): Promise<Work>
}

/**
 * Data of all sites is tidied by one site at a time.
 * @throws ApiError 503 while another run does so, or until the lease of a dead process expires: this run continues
 *   later
 */
async function turnOf({ database }: TidyDeps, mount: string): Promise<Turn> {
  const job = `tidy of all sites of mount ${mount}`
  const lease = await database.jobLease(job, leaseSeconds)
  if (lease === undefined) throw unavailable('another run tidies the data of all sites')
  const end = async () => {
    await lease.release()
    return nothingLeft
  }
  return { job, fence: lease.fence, end }
}

const nothingLeft: Work = async () => ({ done: true })

/** Removes requests for revocation that no site has confirmed in time. */
export function queuePart(deps: TidyDeps): Part {
  const { database, clock } = deps
  const table = database.table(queueTable)
  return async ({ mount, run, cursor }) => {
    const turn = await turnOf(deps, mount)
    const after = [cursor?.serial ?? '', cursor?.site ?? ''] as const
    const page = { by: ['serial', 'site'], after, limit: portionOf(run.order) } as const
    const found = await database.read((q) => database.unverified(queueTraces).list(q, { mount }, page))
    const last = found.at(-1)
    if (last === undefined) return turn.end()
    const end = lastEnd(clock.wall(), run.order.revocationQueueSafetyBuffer)
    const ids = found.map(({ id }) => id)
    return async (tx) => {
      await tx.fence(turn.job, turn.fence)
      const rows = await table.sound(tx, ids)
      const old = rows.filter(({ confirmedAt, requestedAt }) => confirmedAt === null && requestedAt <= end)
      for (const row of old) await table.remove(tx, row)
      const counts = { revocationQueueDeleted: old.length }
      return { done: false, cursor: { site: last.site, notAfter: 0, serial: last.serial }, counts }
    }
  }
}

/** Removes revocations of other sites whose certificates ended long enough ago. */
export function crossClusterPart(deps: TidyDeps, revocations: EndedRevocations): Part {
  const { database, site: own } = deps

  /** The next site after another with revocations of the mount; undefined after the last. */
  async function siteAfter(mount: string, after: string): Promise<string | undefined> {
    const page = { by: 'site', index: 'by_site', after, limit: 1 } as const
    const [found] = await database.read((q) => database.unverified(siteTraces).list(q, { mount }, page))
    return found?.site === own ? siteAfter(mount, own) : found?.site
  }

  return async (place) => {
    const { mount, cursor } = place
    const turn = await turnOf(deps, mount)
    const site = cursor?.site ?? (await siteAfter(mount, ''))
    if (site === undefined) return turn.end()
    const page = await revocations.next(place, cursor ?? { site, notAfter: 0, serial: '' })
    if (page.next === undefined) {
      const following = await siteAfter(mount, site)
      if (following === undefined) return turn.end()
      return async () => ({ done: false, cursor: { site: following, notAfter: 0, serial: '' } })
    }
    const { next, leaving } = page
    return async (tx) => {
      await tx.fence(turn.job, turn.fence)
      const counts = { crossRevokedCertDeleted: await revocations.discard(tx, leaving) }
      return { done: false, cursor: next, counts }
    }
  }
}
