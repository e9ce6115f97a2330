import { Type } from 'typebox'
import { boolean, duration, integer, list, map, text } from '../../../field.ts'
import { Answer, type Call } from '../../../route.ts'
import { decide } from '../../acl/decide.ts'
import { TokenCaller } from '../../caller.ts'
import { type AuthContext, endpoint } from './context.ts'
import { auditedOf, authAnswer, authOf } from './describe.ts'
import { grant } from './grant.ts'

const tokenRequest = Type.Object({
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
  num_uses: integer({ about: 'Number of requests it may make; 0 is unlimited.' }),
  type: text({ about: 'service' }),
  entity_alias: text({ about: 'Only with token roles.' }),
})

async function create(call: Call<AuthContext, typeof tokenRequest>, kind: 'child' | 'orphan'): Promise<Answer> {
  const { tokens, policies, clock } = call.context
  const parent = TokenCaller.of(call.caller).row
  const path = call.mount.path + call.path
  const privileged = decide(await policies.acl(parent.policies), 'update', path, true).allowed
  const { token, warnings } = grant(call.body, { parent, privileged, kind })
  for (const name of await policies.unknown(token.policies)) warnings.push(`Policy "${name}" does not exist`)
  for (const warning of warnings) call.warn(warning)
  const { credential, row } = await tokens.create({ ...token, path })
  return new Answer({ auth: authOf(row, credential, clock.wall()), audited: auditedOf(row) })
}

export const createToken = endpoint({
  method: 'POST',
  path: 'create',
  access: 'token',
  about: 'Makes a token, a child of the caller unless it is an orphan.',
  body: tokenRequest,
  answers: authAnswer,
  run: (call) => create(call, 'child'),
})

export const createOrphan = endpoint({
  method: 'POST',
  path: 'create-orphan',
  access: 'token',
  about: 'Makes a token that outlives the caller.',
  body: tokenRequest,
  answers: authAnswer,
  run: (call) => create(call, 'orphan'),
})
