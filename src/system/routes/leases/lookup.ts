import { Type } from 'typebox'
import { data, keyList, orNull, timestamp } from '../../../answers.ts'
import { secondsLeft } from '../../../auth/lifetime.ts'
import type { TokenRow } from '../../../auth/token.ts'
import { absent, badRequest } from '../../../errors.ts'
import { integer, text } from '../../../field.ts'
import type { LeaseRow } from '../../../leases/lease.ts'
import type { Data } from '../../../route.ts'
import { endpoint } from '../../context.ts'
import { leaseId, leaseIdOf } from './fields.ts'
import { isTokenLease, listTokenLeases, tokenOfLease } from './tokens.ts'

const lease = Type.Object({
  id: Type.String(),
  issue_time: timestamp,
  expire_time: orNull(timestamp),
  last_renewal: orNull(timestamp),
  renewable: Type.Boolean(),
  ttl: Type.Integer(),
})

const describeToken = (id: string, row: TokenRow, now: number): Data => ({
  id,
  issue_time: new Date(row.createdAt).toISOString(),
  expire_time: row.expiresAt === null ? null : new Date(row.expiresAt).toISOString(),
  last_renewal: row.lastRenewalAt === null ? null : new Date(row.lastRenewalAt).toISOString(),
  renewable: row.renewable,
  ttl: row.expiresAt === null ? 0 : secondsLeft(row.expiresAt, now),
})

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
  answers: data(lease),
  async run(call) {
    const { leases, tokens, status } = call.context
    const id = leaseIdOf(call)
    const now = status.clock.wall()
    if (isTokenLease(id)) {
      const token = await tokenOfLease(tokens, id)
      if (token !== undefined) return describeToken(id, token, now)
    } else {
      const row = await leases.find(id)
      if (row !== undefined) return describe(row, now)
    }
    throw badRequest('invalid lease')
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
    answers: keyList,
    async run({ context, params, body: { after = '', limit = 0 } }) {
      const prefix = params.prefix === undefined ? '' : `${params.prefix}/`
      const { leases, tokens } = context
      const most = limit > 0 ? limit : Number.POSITIVE_INFINITY
      const ofTokens = prefix === '' || isTokenLease(prefix) ? await listTokenLeases(tokens, prefix, after, most) : []
      const ofEngines = isTokenLease(prefix) ? [] : await leases.list(prefix, after, most)
      const keys = [...ofTokens, ...ofEngines].sort().slice(0, most)
      if (keys.length === 0) throw absent()
      return { keys }
    },
  })

export const listLeases = listAt('leases/lookup')
export const listLeasesBelow = listAt('leases/lookup/:prefix*')
