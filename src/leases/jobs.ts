import type { Job } from '../engine.ts'
import { DamagedRow } from '../store/faults.ts'
import { pages } from '../store/pages.ts'
import { leaseTraces } from './lease.ts'
import { type Ground, revokeAll } from './revoke.ts'

const PAGE = 100
const beginning = '0'

/** The job that takes leases back when they end, and tries again what failed. */
export function expiryJob(ground: Ground): Job {
  const { database, clock } = ground
  const name = 'expire leases'
  const order = { by: 'dueAt', after: beginning, limit: PAGE } as const
  return {
    name,
    everySeconds: 5,
    async run(signal, fence) {
      for await (const page of pages(database, database.unverified(leaseTraces), {}, order)) {
        const now = clock.wall()
        const due = page.filter(({ dueAt }) => Number(dueAt) <= now).map(({ id }) => id)
        await revokeAll(ground, due, { ripe: (row) => row.dueAt <= now, guard: (tx) => tx.fence(name, fence) })
        if (signal.aborted || due.length < page.length) return
      }
    },
  }
}

/**
 * sys/leases/tidy: looks at every lease there is, and takes back those whose token is gone, which a crash may leave until
 * they end by themselves.
 * @param alive whether a token works
 */
export function tidyJob(ground: Ground, alive: (token: string) => Promise<boolean>): Job {
  const { database } = ground
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
      for await (const page of pages(database, database.unverified(leaseTraces), {}, { by: 'id', limit: PAGE })) {
        const dead = new Set<string>()
        for (const token of new Set(page.map((row) => row.token))) if (!(await spared(token))) dead.add(token)
        const ids = page.filter(({ token }) => dead.has(token)).map(({ id }) => id)
        await revokeAll(ground, ids, { ripe: ({ token }) => dead.has(token), guard: (tx) => tx.fence(name, fence) })
        if (signal.aborted) return
      }
    },
  }
}
