import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { text } from '../../../field.ts'
import type { Call, Data } from '../../../route.ts'
import { TokenCaller } from '../../caller.ts'
import { type AuthContext, endpoint, tokenOfAccessor } from './context.ts'
import { describeToken, tokenAnswer } from './describe.ts'

const nothing = Type.Object({})
const oneToken = Type.Object({ token: text({ about: 'The token; absent means the caller.' }) })

function self(call: Call<AuthContext>): Data {
  const caller = TokenCaller.of(call.caller)
  return describeToken(caller.row, TokenCaller.credentialOf(caller), call.context.clock.wall())
}

export const lookUpSelf = endpoint({
  method: 'GET',
  path: 'lookup-self',
  access: 'token',
  about: "Describes the caller's token.",
  body: nothing,
  answers: tokenAnswer,
  run: self,
})

export const lookUpSelfByPost = endpoint({ ...lookUpSelf, method: 'POST' })

export const lookUpToken = endpoint({
  method: 'POST',
  path: 'lookup',
  access: 'token',
  about: 'Describes a token.',
  body: oneToken,
  answers: tokenAnswer,
  async run(call) {
    const { token } = call.body
    // The caller's own token may be on its last use, and can then no longer be found.
    if (!token || token === TokenCaller.credentialOf(TokenCaller.of(call.caller))) return self(call)
    const row = await call.context.tokens.lookup(token)
    if (row === undefined) throw new ApiError(403, 'bad token')
    return describeToken(row, token, call.context.clock.wall())
  },
})

export const lookUpTokenByGet = endpoint({ ...lookUpToken, method: 'GET' })

export const lookUpAccessor = endpoint({
  method: 'POST',
  path: 'lookup-accessor',
  access: 'token',
  about: 'Describes the token of an accessor, without its text.',
  body: Type.Object({ accessor: text({ about: 'Accessor of the token.' }) }),
  answers: tokenAnswer,
  async run({ context, body }) {
    const row = await tokenOfAccessor(context.tokens, body.accessor)
    return describeToken(row, '', context.clock.wall())
  },
})
