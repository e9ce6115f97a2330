import { Type } from 'typebox'
import { data, done } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { boolean, integer, text } from '../../../field.ts'
import { leaseCounts, readLeaseCount } from '../../../quota/leasecount.ts'
import { endpoint, noFields, type SystemContext } from '../../context.ts'
import { named, quotaPath, requireKind, requireOwnPath } from './fields.ts'
import { listQuotas, quotaNamed, removeQuota } from './named.ts'

const leaseCountQuota = Type.Object({
  counter: Type.Integer(),
  inheritable: Type.Boolean(),
  max_leases: Type.Integer(),
  name: Type.String(),
  path: Type.String(),
  role: Type.String(),
  type: Type.String(),
})

const kind = 'lease-count'
const list = async ({ settings }: SystemContext) => leaseCounts(await settings.of(kind))

/** A mount whose leases are counted, or empty. @throws ApiError 400 */
async function mountPath(context: SystemContext, given: string): Promise<string> {
  const path = await quotaPath(context, given.replace(/\/$/, ''))
  if (path === '') return ''
  const mount = await context.mounts.find(path.replace(/\/?\*?$/, ''))
  if (mount?.path !== path) throw badRequest('path must be a mount, or empty for all: leases are counted by mount')
  if (!context.engines.has(mount.type))
    throw badRequest(`${path} gives no leases that are counted: tokens are not among them`)
  return path
}

export const listLeaseCounts = listQuotas(kind, list)

export const readLeaseCountQuota = endpoint({
  ...named,
  method: 'GET',
  path: 'quotas/lease-count/:name',
  about: 'A lease-count quota, with the number of leases that count towards it.',
  body: noFields,
  answers: data(leaseCountQuota),
  async run({ context, params }) {
    const found = quotaNamed(await list(context), params.name)
    const { name, path, maxLeases } = found
    const counter = await context.leaseQuotas.count(found)
    return { counter, inheritable: path === '', max_leases: maxLeases, name, path, role: '', type: kind }
  },
})

export const writeLeaseCountQuota = endpoint({
  ...named,
  method: 'POST',
  path: 'quotas/lease-count/:name',
  about: 'Creates or replaces a lease-count quota; in force everywhere before the answer.',
  body: Type.Object({
    path: text({ about: 'A mount; empty for all that have no quota of their own.' }),
    max_leases: integer({ about: 'How many leases there may be at a time.' }),
    inheritable: boolean({ about: 'As is a quota of all mounts, and no other.' }),
    role: text({ about: 'Not available: no auth method has roles.' }),
    type: text({ about: 'lease-count.' }),
  }),
  answers: done,
  async run({ context, params, body }) {
    const { name = '' } = params
    requireKind(body, kind)
    const path = await mountPath(context, body.path ?? '')
    if (path !== '' && body.inheritable) throw badRequest('inheritable can only be set for a quota of all mounts')
    const value = readLeaseCount(path, body.max_leases)
    await context.leaseQuotas.recount(path)
    await context.settings.change(kind, name, (set) => {
      requireOwnPath(leaseCounts(set.get(kind) ?? new Map()), name, path)
      return value
    })
    return undefined
  },
})

export const removeLeaseCountQuota = removeQuota(kind)
