import { Type } from 'typebox'
import type { Engine } from '../../engine.ts'
import { Answer, type Routes } from '../../route.ts'
import { type AuthContext, endpoint } from './context.ts'
import { createRoutes } from './create.ts'
import { lookupRoutes } from './lookup.ts'
import { renewRoutes } from './renew.ts'
import { revokeRoutes } from './revoke.ts'

const tidy = endpoint({
  method: 'POST',
  path: 'tidy',
  access: 'token',
  about: 'Removes tokens that can never work again, in the background.',
  body: Type.Object({}),
  danger: 'none',
  async run({ context, warn }) {
    const started = await context.start(context.tokens.tidying)
    warn(
      started
        ? "Tidy operation successfully started. Any information from the operation will be printed to the server's logs."
        : 'Tidy operation already in progress',
    )
    return new Answer({ status: 202 })
  },
})

const routes: Routes<AuthContext> = [...createRoutes, ...lookupRoutes, ...renewRoutes, ...revokeRoutes, tidy]

/** auth/token: making, looking up, renewing and revoking tokens. Mounted at `auth/token/`. */
export const tokenMethod = (context: AuthContext): Engine<AuthContext> => ({ type: 'token', context, routes })
