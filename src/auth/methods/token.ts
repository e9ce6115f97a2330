import type { Engine } from '../../engine.ts'
import type { Route, Routes } from '../../route.ts'
import { listAccessors } from './token/accessors.ts'
import type { AuthContext } from './token/context.ts'
import { createOrphan, createToken } from './token/create.ts'
import { lookUpAccessor, lookUpSelf, lookUpSelfByPost, lookUpToken, lookUpTokenByGet } from './token/lookup.ts'
import { renewAccessor, renewSelf, renewToken } from './token/renew.ts'
import { revokeAccessor, revokeOrphan, revokeSelf, revokeToken } from './token/revoke.ts'
import { tidyTokens } from './token/tidy.ts'

/** Every route below /v1/auth/token. */
export const table = {
  'POST create': createToken,
  'POST create-orphan': createOrphan,
  'POST lookup': lookUpToken,
  'GET lookup': lookUpTokenByGet,
  'GET lookup-self': lookUpSelf,
  'POST lookup-self': lookUpSelfByPost,
  'POST lookup-accessor': lookUpAccessor,
  'LIST accessors': listAccessors,
  'POST renew-self': renewSelf,
  'POST renew': renewToken,
  'POST renew-accessor': renewAccessor,
  'POST revoke-self': revokeSelf,
  'POST revoke': revokeToken,
  'POST revoke-orphan': revokeOrphan,
  'POST revoke-accessor': revokeAccessor,
  'POST tidy': tidyTokens,
} satisfies Readonly<Record<string, Route<AuthContext>>>

const routes: Routes<AuthContext> = Object.values(table)

/** The token auth method, always mounted at `auth/token/`. */
export const tokenMethod = (context: AuthContext): Engine<AuthContext> => ({ type: 'token', context, routes })
