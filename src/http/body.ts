import type { IncomingMessage } from 'node:http'

const nothing = Buffer.alloc(0)

/** Whether a request says it has more body than this before it has sent any. */
export const declaresMore = (request: IncomingMessage, maxBytes: number): boolean =>
  Number(request.headers['content-length'] ?? 0) > maxBytes

/**
 * Reads a request's body whole.
 * @param done called once with the body, or undefined when it is longer than `maxBytes`; at once when there is none,
 *   and never when the client goes away first
 */
export function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer | undefined) => void): void {
  const { headers } = request
  const length = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) {
    done(nothing)
    return
  }
  if (declaresMore(request, maxBytes)) {
    done(undefined)
    return
  }
  const chunks: Buffer[] = []
  let total = 0
  const take = (chunk: Buffer): void => {
    total += chunk.length
    if (total <= maxBytes) {
      chunks.push(chunk)
      return
    }
    request.off('data', take).off('end', finish)
    done(undefined)
  }
  const finish = (): void => {
    const [only] = chunks
    done(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, total))
  }
  request.on('data', take).on('end', finish)
}
