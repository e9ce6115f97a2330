import { type TObject, Type } from 'typebox'
import type { Clock } from '../../clock.ts'
import type { Engine } from '../../engine.ts'
import { ApiError, badRequest } from '../../errors.ts'
import { boolean, duration, integer, list, map, text } from '../../field.ts'
import { Answer, type Call, type Caller, type Route, type Routes } from '../../route.ts'
import { decide } from '../acl/decide.ts'
import { SignedIn } from '../caller.ts'
import type { Policies } from '../policies.ts'
import type { TokenRow } from '../token.ts'
import type { Tokens } from '../tokens.ts'
import { grant } from './grant.ts'
import { authOf, described } from './shown.ts'

export interface AuthContext {
  readonly tokens: Tokens
  readonly policies: Policies
  readonly clock: Clock
}

/** auth/token: making, looking up, renewing and revoking tokens. Mounted at `auth/token/`. */
export const tokenMethod = (context: AuthContext): Engine<AuthContext> => ({ type: 'token', context, routes })

/** Keeps each body's type from the declaration to `run`. */
const endpoint = <Body extends TObject>(route: Route<AuthContext, Body>): Route<AuthContext, Body> => route

const nothing = Type.Object({})
const oneAccessor = Type.Object({ accessor: text({ about: 'Accessor of the token.' }) })

const create = endpoint({
  method: 'POST',
  path: 'create',
  access: 'token',
  about: 'Makes a token, a child of the caller unless it is an orphan.',
  body: Type.Object({
    id: text({ about: 'Text of the token; needs sudo. Random when absent.' }),
    policies: list({ about: "Policies; absent means the caller's." }),
    meta: map({ about: 'Metadata shown on look-up and in the audit log.' }),
    no_parent: boolean({ about: 'Makes an orphan, which outlives the caller; needs sudo.' }),
    no_default_policy: boolean({ about: 'Leaves out the policy "default".' }),
    renewable: boolean({ about: 'Whether it can be renewed; true when absent.' }),
    ttl: duration({ about: 'Life until renewed.', aliases: ['lease'] }),
    explicit_max_ttl: duration({ about: 'Longest life, renewals included.' }),
    period: duration({ about: 'Every renewal gives this life again, without end; needs sudo.' }),
    display_name: text({ about: 'Shown as token-NAME.' }),
    num_uses: integer({ about: 'Number of requests it is good for; 0 is unlimited.' }),
    type: text({ about: 'service' }),
    entity_alias: text({ about: 'Only with token roles.' }),
  }),
  danger: 'none',
  async run(call) {
    const { tokens, policies, clock } = call.context
    const parent = await own(call)
    const acl = await policies.acl(parent.policies)
    const path = call.mount.path + call.path
    const { token, warnings } = grant(call.body, parent, decide(acl, 'update', path, true).allowed)
    for (const name of await policies.unknown(token.policies)) warnings.push(`Policy "${name}" does not exist`)
    for (const warning of warnings) call.warn(warning)
    const { credential, row } = await tokens.create({ ...token, path })
    return new Answer({ auth: authOf(row, credential, clock.wall()) })
  },
})

const lookupSelf = endpoint({
  method: 'GET',
  path: 'lookup-self',
  access: 'token',
  about: "Describes the caller's token.",
  body: nothing,
  danger: 'none',
  async run(call) {
    return described(await own(call), SignedIn.credentialOf(signedIn(call)), call.context.clock.wall())
  },
})

const lookup = endpoint({
  method: 'POST',
  path: 'lookup',
  access: 'token',
  about: 'Describes a token.',
  body: Type.Object({ token: text({ about: 'The token; absent means the caller.' }) }),
  danger: 'none',
  async run(call) {
    const credential = call.body.token || SignedIn.credentialOf(signedIn(call))
    const row = await call.context.tokens.lookup(credential)
    if (row === undefined) throw new ApiError(403, 'bad token')
    return described(row, credential, call.context.clock.wall())
  },
})

const lookupAccessor = endpoint({
  method: 'POST',
  path: 'lookup-accessor',
  access: 'token',
  about: 'Describes the token of an accessor, without its text.',
  body: oneAccessor,
  danger: 'none',
  async run({ context, body }) {
    const row = await context.tokens.withAccessor(required(body.accessor, 'accessor'))
    if (row === undefined) throw badRequest('invalid accessor', { style: 'list' })
    return described(row, '', context.clock.wall())
  },
})

const renewSelf = endpoint({
  method: 'POST',
  path: 'renew-self',
  access: 'token',
  about: "Extends the life of the caller's token.",
  body: Type.Object({ increment: duration({ about: 'Life asked for; 0 asks for the one it was made with.' }) }),
  danger: 'none',
  async run(call) {
    const caller = signedIn(call)
    const { row, warnings } = await call.context.tokens.renew(caller.tokenId, call.body.increment ?? 0)
    for (const warning of warnings) call.warn(warning)
    return new Answer({ auth: authOf(row, SignedIn.credentialOf(caller), call.context.clock.wall()) })
  },
})

const revokeSelf = endpoint({
  method: 'POST',
  path: 'revoke-self',
  access: 'token',
  about: "Revokes the caller's token and its children.",
  body: nothing,
  danger: 'none',
  async run(call) {
    await call.context.tokens.revoke(signedIn(call).tokenId)
    return undefined
  },
})

const revoke = endpoint({
  method: 'POST',
  path: 'revoke',
  access: 'token',
  about: 'Revokes a token and its children; an unknown one is no error.',
  body: Type.Object({ token: text({ about: 'The token.' }) }),
  danger: 'destructive',
  async run({ context, body }) {
    const row = await context.tokens.lookup(required(body.token, 'token ID'))
    if (row !== undefined) await context.tokens.revoke(row.id)
    return undefined
  },
})

const revokeAccessor = endpoint({
  method: 'POST',
  path: 'revoke-accessor',
  access: 'token',
  about: 'Revokes the token of an accessor and its children.',
  body: oneAccessor,
  danger: 'destructive',
  async run({ context, body, warn }) {
    const row = await context.tokens.withAccessor(required(body.accessor, 'accessor'))
    if (row === undefined) {
      warn('No token found with this accessor')
      return new Answer({})
    }
    await context.tokens.revoke(row.id)
    return undefined
  },
})

const routes: Routes<AuthContext> = [
  create,
  lookup,
  { ...lookup, method: 'GET' },
  lookupSelf,
  { ...lookupSelf, method: 'POST' },
  lookupAccessor,
  renewSelf,
  revokeSelf,
  revoke,
  revokeAccessor,
]

function signedIn({ caller }: Call<AuthContext>): Caller {
  if (caller === undefined) throw new TypeError('a route of auth/token ran without a caller')
  return caller
}

/** The caller's row as it is now; revoked since it signed in means 403. */
async function own(call: Call<AuthContext>): Promise<TokenRow> {
  const row = await call.context.tokens.get(signedIn(call).tokenId)
  if (row === undefined) throw new ApiError(403, 'permission denied')
  return row
}

function required(value: string | undefined, what: string): string {
  if (!value) throw badRequest(`missing ${what}`)
  return value
}
