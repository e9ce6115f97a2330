import type { Answers } from '../../src/answers.ts'
import { table as token } from '../../src/auth/methods/token.ts'
import { routes as pki } from '../../src/engines/pki/index.ts'
import { routes as transit } from '../../src/engines/transit/index.ts'
import type { Route, Routes } from '../../src/route.ts'
import { table as system } from '../../src/system/index.ts'

/** A route as the client of the tests sees it. */
export interface Endpoint extends Pick<Route<unknown>, 'method' | 'path' | 'inject'> {
  readonly answers: Answers
}

/** Every route of the server, by the type of its mount. */
export type Contract = Readonly<Record<string, readonly Endpoint[]>>

const endpointsOf = (routes: Routes<unknown>): readonly Endpoint[] =>
  routes.map(({ method, path, inject, answers }) => ({
    method,
    path,
    ...(inject ? { inject } : {}),
    answers,
  }))

/** Run as a program: prints the contract, since a test that imported every route would take seconds to begin. */
if (import.meta.main) {
  const contract: Contract = {
    system: endpointsOf(Object.values(system)),
    token: endpointsOf(Object.values(token)),
    transit: endpointsOf(transit),
    pki: endpointsOf(pki),
  }
  process.stdout.write(JSON.stringify(contract))
}
