import type { IncomingMessage } from 'node:http'
import { after } from '../after.ts'
import { strangerBodyBytes } from '../request/exchange.ts'
import type { MaybePromise } from '../route.ts'

const nothing = Buffer.alloc(0)

/** Whether a request says it has more body than this before it has sent any. */
export const declaresMore = (request: IncomingMessage, maxBytes: number): boolean =>
  Number(request.headers['content-length'] ?? 0) > maxBytes

/** How much of a body is read. */
export interface BodyLimits {
  readonly maxBytes: number
  /** Asked once, before more than `strangerBodyBytes` are read: a lower limit of the request's route. */
  routeBytes(): MaybePromise<number | undefined>
}

/**
 * Reads a request's body whole.
 * @param done called once with the body, or undefined when it is longer than the limits; at once when there is none,
 *   and never when the client goes away first
 */
export function readBody(request: IncomingMessage, limits: BodyLimits, done: (body: Buffer | undefined) => void): void {
  const { headers } = request
  const length = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) {
    done(nothing)
    return
  }
  if (declaresMore(request, limits.maxBytes)) {
    done(undefined)
    return
  }
  if (!declaresMore(request, strangerBodyBytes)) {
    collect(request, limits, done)
    return
  }
  void after(limits.routeBytes(), (routeBytes = limits.maxBytes) => {
    if (declaresMore(request, routeBytes)) done(undefined)
    else collect(request, limits, done, Math.min(routeBytes, limits.maxBytes))
  })
}

/** @param known the limit, where the route was asked before anything was read */
function collect(
  request: IncomingMessage,
  { maxBytes, routeBytes }: BodyLimits,
  done: (body: Buffer | undefined) => void,
  known?: number,
): void {
  const chunks: Buffer[] = []
  let total = 0
  let limit = known ?? Math.min(strangerBodyBytes, maxBytes)
  let final = known !== undefined || limit === maxBytes
  const take = (chunk: Buffer): void => {
    total += chunk.length
    chunks.push(chunk)
    if (total > limit) exceed()
  }
  const exceed = (): void => {
    if (final) {
      request.off('data', take).off('end', finish)
      done(undefined)
      return
    }
    final = true
    request.pause()
    void after(routeBytes(), (bytes = maxBytes) => {
      limit = Math.min(bytes, maxBytes)
      if (total > limit) exceed()
      else request.resume()
    })
  }
  const finish = (): void => {
    const [only] = chunks
    done(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, total))
  }
  request.on('data', take).on('end', finish)
}
