import type { TObject } from 'typebox'
import type { Clock } from '../../../clock.ts'
import { badRequest } from '../../../errors.ts'
import type { Job } from '../../../job.ts'
import type { Route } from '../../../route.ts'
import type { Policies } from '../../policies.ts'
import type { TokenRow } from '../../token.ts'
import type { Tokens } from '../../tokens.ts'

/** The context of the routes of /v1/auth/token. */
export interface AuthContext {
  readonly tokens: Tokens
  readonly policies: Policies
  readonly clock: Clock
  /** Starts a background job; false when it is already running. */
  start(job: Job): Promise<boolean>
}

/** Keeps each body's type from the declaration to `run`. */
export const endpoint = <Body extends TObject>(route: Route<AuthContext, Body>): Route<AuthContext, Body> => route

/** @throws ApiError 400 naming the missing field */
export function required(value: string | undefined, name: string): string {
  if (!value) throw badRequest(`missing ${name}`)
  return value
}

/**
 * The living token of an accessor.
 * @throws ApiError 400 for a missing accessor or one without a living token
 */
export async function tokenOfAccessor(tokens: Tokens, accessor: string | undefined): Promise<TokenRow> {
  const row = await tokens.withAccessor(required(accessor, 'accessor'))
  if (row === undefined) throw badRequest('invalid accessor', { style: 'list' })
  return row
}
