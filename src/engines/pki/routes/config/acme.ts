import { Type } from 'typebox'
import { data } from '../../../../answers.ts'
import { route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'

const nothing = Type.Object({})

/**
 * Says that ACME is off, which it always is. Without this path `pki health-check` of the CLI takes the server for one of
 * an old version, and its exit code for that hides the findings of its other checks.
 */
export const readAcme = route<PkiContext, typeof nothing>({
  method: 'GET',
  path: 'config/acme',
  access: 'token',
  about: 'ACME is not built: it is never enabled.',
  body: nothing,
  answers: data(Type.Object({ enabled: Type.Boolean() })),
  run: async () => ({ enabled: false }),
})
