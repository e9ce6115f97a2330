import { Type } from 'typebox'
import { secondsLeft } from '../../../auth/lifetime.ts'
import { absent, badRequest } from '../../../errors.ts'
import { integer, text } from '../../../field.ts'
import type { LeaseRow } from '../../../leases/lease.ts'
import type { Data } from '../../../route.ts'
import { endpoint } from '../../context.ts'
import { leaseId, leaseIdOf } from './fields.ts'

const describe = (row: LeaseRow, now: number): Data => ({
  id: row.leaseId,
  issue_time: new Date(row.issuedAt).toISOString(),
  expire_time: new Date(row.expiresAt).toISOString(),
  last_renewal: row.lastRenewalAt === null ? null : new Date(row.lastRenewalAt).toISOString(),
  renewable: row.renewable && row.attempts === 0,
  ttl: secondsLeft(row.expiresAt, now),
})

export const lookUpLease = endpoint({
  method: 'POST',
  path: 'leases/lookup',
  access: 'token',
  about: 'Describes a lease.',
  body: Type.Object({ lease_id: leaseId }),
  async run(call) {
    const { leases, status } = call.context
    const row = await leases.find(leaseIdOf(call))
    if (row === undefined) throw badRequest('invalid lease')
    return describe(row, status.clock.wall())
  },
})

const listAt = (path: string) =>
  endpoint({
    method: 'LIST',
    path,
    access: 'sudo',
    about: 'Leases, and folders of leases, directly below a prefix.',
    body: Type.Object({
      after: text({ about: 'Keys beyond this one only.' }),
      limit: integer({ about: 'At most so many keys; absent or 0 is all.' }),
    }),
    async run({ context, params, body: { after = '', limit = 0 } }) {
      const prefix = params.prefix === undefined ? '' : `${params.prefix}/`
      const keys = await context.leases.list(prefix, after, limit > 0 ? limit : Number.POSITIVE_INFINITY)
      if (keys.length === 0) throw absent()
      return { keys }
    },
  })

export const listLeases = listAt('leases/lookup')
export const listLeasesBelow = listAt('leases/lookup/:prefix*')
