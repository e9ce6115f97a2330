import { Type } from 'typebox'
import { data, done } from '../../../answers.ts'
import { duration, raw, text } from '../../../field.ts'
import { type RateLimit, rateLimits, readRateLimit } from '../../../quota/ratelimit.ts'
import type { Data } from '../../../route.ts'
import { endpoint, noFields, type SystemContext } from '../../context.ts'
import { named, quotaPath, requireKind, requireOwnPath } from './fields.ts'
import { listQuotas, quotaNamed, removeQuota } from './named.ts'

const rateLimitQuota = Type.Object({
  block_interval: Type.Integer(),
  group_by: Type.String(),
  inheritable: Type.Boolean(),
  interval: Type.Integer(),
  name: Type.String(),
  path: Type.String(),
  rate: Type.Number(),
  role: Type.String(),
  type: Type.String(),
})

const quotaFields = Type.Object({
  path: text({ about: 'A mount, a path below one, or its beginning with * behind; empty for all requests.' }),
  rate: raw({ about: 'Requests of a caller in an interval.' }),
  interval: duration({ about: 'The interval; a second when absent.' }),
  block_interval: duration({ about: 'How long a caller is refused who asked too often.' }),
  group_by: text({ about: 'Whose requests are counted together: ip, token, or none for all of them.' }),
  role: text({ about: 'Not available: no auth method has roles.' }),
  type: text({ about: 'rate-limit.' }),
})

const kind = 'rate-limit'
const list = async ({ settings }: SystemContext) => rateLimits(await settings.of(kind))

const describe = ({ name, path, rate, intervalSeconds, blockSeconds, groupBy }: RateLimit): Data => ({
  block_interval: blockSeconds,
  group_by: groupBy,
  inheritable: path === '',
  interval: intervalSeconds,
  name,
  path,
  rate,
  role: '',
  type: kind,
})

export const listRateLimits = listQuotas(kind, list)

export const readRateLimitQuota = endpoint({
  ...named,
  method: 'GET',
  path: 'quotas/rate-limit/:name',
  about: 'A rate-limit quota.',
  body: noFields,
  answers: data(rateLimitQuota),
  async run({ context, params }) {
    return describe(quotaNamed(await list(context), params.name))
  },
})

export const writeRateLimitQuota = endpoint({
  ...named,
  method: 'POST',
  path: 'quotas/rate-limit/:name',
  about: 'Creates or replaces a rate-limit quota; in force everywhere before the answer.',
  body: quotaFields,
  answers: done,
  async run({ context, params, body }) {
    const { name = '' } = params
    requireKind(body, kind)
    const path = await quotaPath(context, body.path ?? '')
    const { interval, block_interval: block, group_by: groupBy } = body
    const rate = typeof body.rate === 'string' ? Number.parseFloat(body.rate) : Number(body.rate ?? Number.NaN)
    const value = readRateLimit({
      path,
      rate,
      intervalSeconds: interval,
      blockSeconds: block,
      groupBy: groupBy || 'ip',
    })
    await context.settings.change(kind, name, (set) => {
      requireOwnPath(rateLimits(set.get(kind) ?? new Map()), name, path)
      return value
    })
    return undefined
  },
})

export const removeRateLimitQuota = removeQuota(kind)
