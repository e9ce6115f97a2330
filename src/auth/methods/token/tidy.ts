import { Type } from 'typebox'
import { noData } from '../../../answers.ts'
import { Answer, type Call } from '../../../route.ts'
import { endpoint } from './context.ts'

/** 202 with Vault's warning whether the job was started or was already running. */
export function tidyAnswer(started: boolean, warn: Call<unknown>['warn']): Answer {
  warn(
    started
      ? "Tidy operation successfully started. Any information from the operation will be printed to the server's logs."
      : 'Tidy operation already in progress',
  )
  return new Answer({ status: 202 })
}

export const tidyTokens = endpoint({
  method: 'POST',
  path: 'tidy',
  access: 'token',
  about: 'Removes tokens that can never work again, in the background.',
  body: Type.Object({}),
  answers: noData(202),
  run: async ({ context, warn }) => tidyAnswer(await context.start(context.tokens.tidying), warn),
})
