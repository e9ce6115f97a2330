import { Type } from 'typebox'
import { done } from '../../../answers.ts'
import { badRequest } from '../../../errors.ts'
import { text } from '../../../field.ts'
import { Answer } from '../../../route.ts'
import { TokenCaller } from '../../caller.ts'
import { endpoint, required } from './context.ts'

const oneToken = Type.Object({ token: text({ about: 'The token.' }) })

export const revokeSelf = endpoint({
  method: 'POST',
  path: 'revoke-self',
  access: 'token',
  about: "Revokes the caller's token, its children and their leases.",
  body: Type.Object({}),
  answers: done,
  async run(call) {
    await call.context.tokens.revoke(TokenCaller.of(call.caller).tokenId)
    return undefined
  },
})

export const revokeToken = endpoint({
  method: 'POST',
  path: 'revoke',
  access: 'token',
  about: 'Revokes a token, its children and their leases; an unknown one is not an error.',
  body: oneToken,
  answers: done,
  async run({ context, body }) {
    const id = await context.tokens.idOf(required(body.token, 'token ID'))
    if (id !== undefined) await context.tokens.revoke(id)
    return undefined
  },
})

export const revokeOrphan = endpoint({
  method: 'POST',
  path: 'revoke-orphan',
  access: 'sudo',
  about: 'Revokes a token and its leases; its children become orphans.',
  body: oneToken,
  answers: done,
  async run({ context, body }) {
    const row = await context.tokens.lookup(required(body.token, 'token ID'))
    if (row === undefined) throw badRequest('token to revoke not found')
    await context.tokens.revokeOrphan(row.id)
    return undefined
  },
})

export const revokeAccessor = endpoint({
  method: 'POST',
  path: 'revoke-accessor',
  access: 'token',
  about: 'Revokes the token of an accessor, its children and their leases.',
  body: Type.Object({ accessor: text({ about: 'Accessor of the token.' }) }),
  answers: done,
  async run({ context, body, warn }) {
    const id = await context.tokens.idOfAccessor(required(body.accessor, 'accessor'))
    if (id === undefined) {
      warn('No token found with this accessor')
      return new Answer({})
    }
    await context.tokens.revoke(id)
    return undefined
  },
})
