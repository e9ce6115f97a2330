import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import type { Route } from '../route.ts'
import { compileFields, type Fields } from './parse.ts'

/** A route, compiled at start. */
export interface Endpoint {
  readonly route: Route<unknown>
  readonly access: Route<unknown>['access']
  /** Refuses every caller alike, before authentication. */
  readonly refuse?: () => ApiError
  readonly fields: Fields
  readonly captures: readonly Capture[]
}

export interface Capture {
  readonly name: string
  readonly pattern: RegExp
  /** Whether it is a raw rest, percent-encoded in the canonical path. */
  readonly raw: boolean
}

/** The endpoint of a path, and the captured segments. */
export interface Match {
  readonly endpoint: Endpoint
  readonly params: Readonly<Record<string, string>>
}

/** 404 of an existing mount for a path without a route. */
export const unsupportedPath = (): ApiError => new ApiError(404, 'unsupported path', { style: 'list' })

/** 405 for a path that exists under another method. */
const unsupportedOperation = (): ApiError => new ApiError(405, 'unsupported operation', { style: 'list' })

/** 404 for a path below no mount. @param path as policies see it */
export const unknownMount = (path: string): ApiError =>
  new ApiError(404, `no handler for route "${path}". route entry not found.`)

const noFields = compileFields({}, [])
const body = Type.Object({})

/**
 * Takes the place of a missing route and passes through the same steps: only a caller whose policies grant the path
 * reaches `run`, which throws.
 */
function missing(refusal: () => ApiError): Match {
  const run = () => {
    throw refusal()
  }
  const route: Route<unknown> = { method: 'GET', path: '', access: 'token', about: '', body, answers: [], run }
  return { endpoint: { route, access: route.access, fields: noFields, captures: [] }, params: {} }
}

/** The same for every caller, with or without a token. */
function missingForAll(refuse: () => ApiError): Match {
  const { endpoint, params } = missing(refuse)
  return { endpoint: { ...endpoint, refuse }, params }
}

export const missingPath: Match = missing(unsupportedPath)
export const missingMethod: Match = missing(unsupportedOperation)
/**
 * Below a public pattern whose captures do not fit: readers of its paths may learn that this is not one. On public paths
 * the reference has these texts as they are, not as a list of errors.
 */
export const missingPublicPath: Match = missingForAll(() => new ApiError(404, 'unsupported path'))
/** The methods of a public path are not secret, so every caller is told. */
export const missingPublicMethod: Match = missingForAll(() => new ApiError(405, 'unsupported operation'))
export const missingMount = (path: string): Match => missing(() => unknownMount(path))
