import { after, nextTurn } from '../after.ts'
import type { Caller, Capability, MaybePromise, Outcome } from '../route.ts'
import { Stream } from '../stream.ts'
import type { CanonicalRequest } from './canonicalise.ts'
import { envelope, type Warnings } from './envelope.ts'
import { isLong, type RawReply } from './exchange.ts'
import { passRequestHeaders, restrictResponseHeaders } from './headers.ts'
import { convertFields, normaliseNames } from './parse.ts'
import type { Recorder } from './recorder.ts'
import { revalidate } from './revalidate.ts'
import type { Target } from './routetable.ts'

const noBytes = Buffer.alloc(0)

/** The rights of a request, and its caller. */
export interface Grant {
  readonly caller: Caller | undefined
  readonly capability: Capability
  /** Whether the policies grant sudo too. */
  privileged(): boolean
}

/**
 * Runs a route: names → fields → run → respond.
 * @throws {ApiError} 400 for a field, and any error of the route
 */
export function run(
  request: CanonicalRequest,
  target: Target,
  grant: Grant,
  recorder: Recorder,
): MaybePromise<RawReply> {
  const { mount, context, match } = target
  const { route, fields } = match.endpoint
  const { headers } = request.raw
  const named = normaliseNames(fields, request.input)
  const warnings = { parameters: named.warnings, route: [] as string[] }
  recorder.warnings = warnings
  const outcome = route.run({
    context,
    mount,
    params: match.params,
    body: convertFields(fields, named.values),
    bytes: request.bytes ?? noBytes,
    path: request.path.slice(mount.path.length),
    sentPath: request.sentPolicyPath,
    requestId: request.raw.id,
    caller: grant.caller,
    accept: String(headers.accept ?? ''),
    headers: passRequestHeaders(mount, headers),
    capability: grant.capability,
    privileged: grant.privileged,
    warn(text) {
      if (!warnings.route.includes(text)) warnings.route.push(text)
    },
  })
  const answer = (result: Outcome) => respond(request, target, result, warnings, recorder)
  return after(outcome, (result) => (isLong(request.raw.body) ? nextTurn().then(() => answer(result)) : answer(result)))
}

/** The answer is recorded before it is sent. @throws ApiError 503 for a long body that cannot be sent now */
function respond(
  request: CanonicalRequest,
  target: Target,
  result: Outcome,
  warnings: Warnings,
  recorder: Recorder,
): MaybePromise<RawReply> {
  const outcome = revalidate(restrictResponseHeaders(target.mount, result), request, target)
  const reply = envelope(request.raw.id, outcome, warnings, target.match.endpoint.route.inject === true)
  if (reply.body instanceof Stream && request.method !== 'HEAD') reply.body.reserve()
  const record = () => recorder.recordResponse(outcome, warnings, reply)
  return isLong(reply.body) ? nextTurn().then(record) : record()
}
