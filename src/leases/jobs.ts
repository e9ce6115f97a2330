import { paced } from '../after.ts'
import type { Job } from '../job.ts'
import { DamagedRow } from '../store/faults.ts'
import { pages, walk } from '../store/pages.ts'
import { dueBy } from '../store/table.ts'
import { leaseTraces } from './lease.ts'
import { type Condition, type RevokeDeps, revokeAll } from './revoke.ts'

const pageSize = 64

/** The job that revokes leases when they expire, and retries revocations that failed. */
export function expiryJob(deps: RevokeDeps): Job {
  const { database, clock } = deps
  const name = 'expire leases'
  const order = { by: ['dueAt', 'id'], limit: pageSize } as const
  return {
    name,
    everySeconds: 5,
    async run(signal, fence) {
      const now = clock.wall()
      const ended = { dueAt: dueBy(now) }
      for await (const page of pages(database, database.unverified(leaseTraces), ended, order)) {
        const due = page.map(({ id }) => id)
        const condition: Condition = { eligible: (row) => row.dueAt <= now, guard: (tx) => tx.fence(name, fence) }
        await paced(clock, () => revokeAll(deps, due, condition))
        if (signal.aborted) return
      }
    },
  }
}

/**
 * sys/leases/tidy: goes through all leases and revokes those whose token is gone; a crash may leave such leases until
 * they expire.
 * @param alive whether a token is valid
 */
export function tidyJob(deps: RevokeDeps, alive: (token: string) => Promise<boolean>): Job {
  const { database, clock } = deps
  const name = 'tidy leases'
  const spared = (token: string): Promise<boolean> =>
    alive(token).catch((error: unknown) => {
      if (error instanceof DamagedRow) return true
      throw error
    })
  return {
    name,
    everySeconds: 600,
    async run(signal, fence) {
      const ways = { claim: { job: name, fence }, limit: pageSize, signal, clock }
      for await (const page of walk(database, database.unverified(leaseTraces), ways)) {
        const dead = new Set<string>()
        for (const token of new Set(page.map((row) => row.token))) if (!(await spared(token))) dead.add(token)
        const ids = page.filter(({ token }) => dead.has(token)).map(({ id }) => id)
        await revokeAll(deps, ids, { eligible: ({ token }) => dead.has(token), guard: (tx) => tx.fence(name, fence) })
      }
    },
  }
}
