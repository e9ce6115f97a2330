import { Type } from 'typebox'
import { absent, badRequest } from '../errors.ts'
import { boolean, duration, integer, text } from '../field.ts'
import { type LeaseRow, secondsLeft } from '../leases/lease.ts'
import { Answer, type Call, type Data, type Outcome, route } from '../route.ts'
import type { SystemContext } from './context.ts'

const leaseId = text({ about: 'The lease; in the path or here.' })
const sync = boolean({ about: 'Whether to answer only when everything is taken back.' })
const oneLease = Type.Object({ lease_id: leaseId })
const renewing = Type.Object({
  lease_id: leaseId,
  increment: duration({ about: 'Life asked for; 0 asks for the first one.' }),
})
const revoking = Type.Object({ lease_id: leaseId, sync })
const revokingMany = Type.Object({ sync })
const nothing = Type.Object({})
const listing = Type.Object({
  after: text({ about: 'Keys beyond this one only.' }),
  limit: integer({ about: 'At most so many keys; absent or 0 is all.' }),
})

/** The id in the path, or else in the body. */
function idOf({ params, body }: Pick<Call<SystemContext, typeof oneLease>, 'params' | 'body'>): string {
  const id = params.lease_id || body.lease_id
  if (!id) throw badRequest('lease_id must be specified')
  return id
}

/** An operator who means tokens must not be told that they are revoked. */
function refuseTokens(id: string): void {
  if (!id.startsWith('auth/')) return
  throw badRequest(
    'tokens are no leases here: use auth/token/revoke, auth/token/revoke-accessor or auth/token/accessors',
  )
}

/** As a folder. */
function prefixOf({ params }: Pick<Call<SystemContext>, 'params'>): string {
  const prefix = `${params.prefix ?? ''}/`
  refuseTokens(prefix)
  return prefix
}

const described = (row: LeaseRow, now: number): Data => ({
  id: row.leaseId,
  issue_time: new Date(row.issuedAt).toISOString(),
  expire_time: new Date(row.expiresAt).toISOString(),
  last_renewal: row.lastRenewalAt === null ? null : new Date(row.lastRenewalAt).toISOString(),
  renewable: row.renewable && row.attempts === 0,
  ttl: secondsLeft(row, now),
})

async function lookup(call: Call<SystemContext, typeof oneLease>): Promise<Outcome> {
  const { leases, status } = call.context
  const row = await leases.find(idOf(call))
  if (row === undefined) throw badRequest('invalid lease')
  return described(row, status.clock.wall())
}

async function list({ context, params, body }: Call<SystemContext, typeof listing>): Promise<Outcome> {
  const { after = '', limit = 0 } = body
  const prefix = params.prefix === undefined ? '' : `${params.prefix}/`
  const keys = await context.leases.list(prefix, after, limit > 0 ? limit : Number.POSITIVE_INFINITY)
  if (keys.length === 0) throw absent()
  return { keys }
}

async function renew(call: Call<SystemContext, typeof renewing>): Promise<Outcome> {
  const { lease, warnings } = await call.context.leases.renew(idOf(call), call.body.increment ?? 0)
  for (const warning of warnings) call.warn(warning)
  return new Answer({ lease })
}

/** One lease is always taken back before the answer, whatever `sync` says. */
async function revoke(call: Call<SystemContext, typeof revoking>): Promise<Outcome> {
  const id = idOf(call)
  refuseTokens(id)
  await call.context.leases.revoke(id)
  return undefined
}

async function revokePrefix(call: Call<SystemContext, typeof revokingMany>): Promise<Outcome> {
  const { leases } = call.context
  const prefix = prefixOf(call)
  await (call.body.sync ? leases.revokePrefix(prefix) : leases.expirePrefix(prefix))
  return undefined
}

async function revokeForce(call: Call<SystemContext>): Promise<Outcome> {
  await call.context.leases.revokeForce(prefixOf(call))
  return undefined
}

async function tidy({ context, warn }: Call<SystemContext>): Promise<Outcome> {
  const started = await context.start(context.leases.tidying)
  warn(
    started
      ? "Tidy operation successfully started. Any information from the operation will be printed to the server's logs."
      : 'Tidy operation already in progress',
  )
  return new Answer({ status: 202 })
}

/** What today's paths and the old ones have in common, at `leases/` and at ''. */
function verbsAt(base: string) {
  const renewAt = (path: string) =>
    route<SystemContext, typeof renewing>({
      method: 'POST',
      path,
      access: 'token',
      about: 'Gives a lease more time.',
      body: renewing,
      danger: 'none',
      run: renew,
    })
  const revokeAt = (path: string) =>
    route<SystemContext, typeof revoking>({
      method: 'POST',
      path,
      access: 'token',
      about: 'Takes a lease back; an unknown one is no error.',
      body: revoking,
      danger: 'destructive',
      run: revoke,
    })
  return [
    renewAt(`${base}renew`),
    renewAt(`${base}renew/:lease_id*`),
    revokeAt(`${base}revoke`),
    revokeAt(`${base}revoke/:lease_id*`),
    route<SystemContext, typeof revokingMany>({
      method: 'POST',
      path: `${base}revoke-prefix/:prefix*`,
      access: 'sudo',
      about: 'Takes back every lease below a prefix.',
      body: revokingMany,
      danger: 'destructive',
      run: revokePrefix,
    }),
    route<SystemContext, typeof nothing>({
      method: 'POST',
      path: `${base}revoke-force/:prefix*`,
      access: 'sudo',
      about: 'As revoke-prefix, and forgets leases that an engine fails to take back.',
      body: nothing,
      danger: 'destructive',
      run: revokeForce,
    }),
  ]
}

const listAt = (path: string) =>
  route<SystemContext, typeof listing>({
    method: 'LIST',
    path,
    access: 'sudo',
    about: 'Leases, and folders of leases, directly below a prefix.',
    body: listing,
    danger: 'none',
    run: list,
  })

/** What was given for a time, by id and by prefix: sys/leases, and the older paths without it. */
export const leaseRoutes = [
  route<SystemContext, typeof oneLease>({
    method: 'POST',
    path: 'leases/lookup',
    access: 'token',
    about: 'Describes a lease.',
    body: oneLease,
    danger: 'none',
    run: lookup,
  }),
  listAt('leases/lookup'),
  listAt('leases/lookup/:prefix*'),
  ...verbsAt('leases/'),
  ...verbsAt(''),
  route<SystemContext, typeof nothing>({
    method: 'POST',
    path: 'leases/tidy',
    access: 'token',
    about: 'Takes back leases whose token is gone, in the background.',
    body: nothing,
    danger: 'none',
    run: tidy,
  }),
]
