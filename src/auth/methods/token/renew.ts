import { Type } from 'typebox'
import { badRequest } from '../../../errors.ts'
import { duration, text } from '../../../field.ts'
import { Answer, type Call } from '../../../route.ts'
import { TokenCaller } from '../../caller.ts'
import { type AuthContext, endpoint, required, tokenOfAccessor } from './context.ts'
import { auditedOf, authAnswer, authOf } from './describe.ts'

const increment = duration({
  about: 'The requested life; 0 requests that of the last renewal, or else of its creation.',
})

/** @param credential '' if the caller knows only the accessor */
async function renew(
  { context, warn }: Pick<Call<AuthContext>, 'context' | 'warn'>,
  id: string,
  credential: string,
  seconds: number | undefined,
): Promise<Answer> {
  const { row, warnings } = await context.tokens.renew(id, seconds ?? 0)
  for (const warning of warnings) warn(warning)
  return new Answer({ auth: authOf(row, credential, context.clock.wall()), audited: auditedOf(row) })
}

export const renewSelf = endpoint({
  method: 'POST',
  path: 'renew-self',
  access: 'token',
  about: "Extends the life of the caller's token.",
  body: Type.Object({ increment }),
  answers: authAnswer,
  run(call) {
    const caller = TokenCaller.of(call.caller)
    return renew(call, caller.tokenId, TokenCaller.credentialOf(caller), call.body.increment)
  },
})

export const renewToken = endpoint({
  method: 'POST',
  path: 'renew',
  access: 'token',
  about: 'Extends the life of a token.',
  body: Type.Object({ token: text({ about: 'The token.' }), increment }),
  answers: authAnswer,
  async run(call) {
    const credential = required(call.body.token, 'token ID')
    const row = await call.context.tokens.lookup(credential)
    if (row === undefined) throw badRequest('token not found')
    return renew(call, row.id, credential, call.body.increment)
  },
})

export const renewAccessor = endpoint({
  method: 'POST',
  path: 'renew-accessor',
  access: 'token',
  about: 'Extends the life of the token of an accessor.',
  body: Type.Object({ accessor: text({ about: 'Accessor of the token.' }), increment }),
  answers: authAnswer,
  async run(call) {
    const row = await tokenOfAccessor(call.context.tokens, call.body.accessor)
    return renew(call, row.id, '', call.body.increment)
  },
})
