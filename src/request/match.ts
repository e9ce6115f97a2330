import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import type { Route } from '../route.ts'
import { compileFields, type Fields } from './parse.ts'

/** A route, compiled at start. */
export interface Endpoint {
  readonly route: Route<unknown>
  /** As the route's; `nobody` where every caller is refused alike, before sign-in. */
  readonly access: Route<unknown>['access'] | 'nobody'
  readonly fields: Fields
  readonly captures: readonly Capture[]
}

export interface Capture {
  readonly name: string
  readonly pattern: RegExp
  /** Whether it is a raw rest, percent-encoded in the canonical path. */
  readonly raw: boolean
}

/** The endpoint of a path, and what the path captured. */
export interface Match {
  readonly endpoint: Endpoint
  readonly params: Readonly<Record<string, string>>
}

/** 404 of a path that no route of an existing mount has. */
export const unsupportedPath = (): ApiError => new ApiError(404, 'unsupported path', { style: 'list' })

/** 405 of a path that exists under another method. */
export const unsupportedOperation = (): ApiError => new ApiError(405, 'unsupported operation', { style: 'list' })

/** 404 of a path below no mount. @param path as policies see it */
export const unknownMount = (path: string): ApiError =>
  new ApiError(404, `no handler for route "${path}". route entry not found.`)

const noFields = compileFields({}, [])
const body = Type.Object({})

/**
 * Stands where there is no route, and passes through the same steps as one: only a caller whose policies grant the path
 * gets as far as `run`, which throws.
 */
function missing(refusal: () => ApiError, access: Endpoint['access'] = 'token'): Match {
  const run = () => {
    throw refusal()
  }
  const route: Route<unknown> = { method: 'GET', path: '', access: 'token', about: '', body, run }
  return { endpoint: { route, access, fields: noFields, captures: [] }, params: {} }
}

export const missingPath: Match = missing(unsupportedPath)
export const missingMethod: Match = missing(unsupportedOperation)
/** The methods of a public path are no secret, so every caller is told. */
export const missingPublicMethod: Match = missing(unsupportedOperation, 'nobody')
export const missingMount = (path: string): Match => missing(() => unknownMount(path))
