import { ApiError } from '../errors.ts'
import { errorReply } from '../request/envelope.ts'
import type { Pipeline, RawReply, RawRequest } from '../request/exchange.ts'
import type { MaybePromise } from '../route.ts'
import { corsOf } from '../settings/cors.ts'
import type { Settings } from '../settings/settings.ts'

const methods = 'DELETE, GET, OPTIONS, POST, PUT, LIST, PATCH'
const allowedMethods: ReadonlySet<string> = new Set(methods.split(', '))
/** How long a browser remembers the answer to its question. */
const maxAgeSeconds = '300'

/**
 * Answers browsers of other origins, where sys/config/cors allows some, as the reference does. A request without Origin
 * pays for nothing but the look at that header.
 */
export function withCors(pipeline: Pipeline, settings: Settings): Pipeline {
  const fail = (error: unknown): RawReply => {
    const known = error instanceof ApiError ? error : new ApiError(500, 'internal error', { style: 'list' })
    return errorReply(known)
  }
  return {
    ...(pipeline.bodyLimit ? { bodyLimit: (request: RawRequest) => pipeline.bodyLimit?.(request) } : {}),
    ...(pipeline.refused ? { refused: (request: RawRequest) => pipeline.refused?.(request) } : {}),
    handle(request) {
      const { origin } = request.headers
      if (typeof origin !== 'string' || origin === '') return pipeline.handle(request)
      return answer(pipeline, settings, request, origin).catch(fail)
    },
  }
}

async function answer(pipeline: Pipeline, settings: Settings, request: RawRequest, origin: string): Promise<RawReply> {
  const cors = corsOf(await settings.of('cors'))
  if (cors === undefined) return pipeline.handle(request)
  if (!cors.origins.includes('*') && !cors.origins.includes(origin)) {
    return (await pipeline.refused?.(request)) ?? errorReply(new ApiError(403, 'origin not allowed'))
  }
  const told = ['Access-Control-Allow-Origin', origin, 'Vary', 'Origin']
  if (request.method === 'OPTIONS') return (await pipeline.refused?.(request)) ?? preflight(request, told, cors.headers)
  const reply: Awaited<MaybePromise<RawReply>> = await pipeline.handle(request)
  return { ...reply, headers: [...reply.headers, ...told] }
}

function preflight({ headers }: RawRequest, told: readonly string[], allowed: readonly string[]): RawReply {
  const wanted = String(headers['access-control-request-method'] ?? '')
  if (!allowedMethods.has(wanted)) return errorReply(new ApiError(405, []))
  const answers = ['Access-Control-Allow-Methods', methods, 'Access-Control-Allow-Headers', allowed.join(',')]
  const age = ['Access-Control-Max-Age', maxAgeSeconds, 'Cache-Control', 'no-store']
  return { status: 200, headers: [...told, ...answers, ...age], body: '' }
}
