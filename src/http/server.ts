import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import Koa from 'koa'
import type { Logger } from '../log.ts'
import type { Pipeline, RawReply, RawRequest } from '../request/exchange.ts'
import { splitTarget } from '../request/path.ts'
import { Stream } from '../stream.ts'
import { readBody } from './body.ts'
import { piecesOf, sendPieces } from './streaming.ts'

export interface EdgeOptions {
  readonly pipeline: Pipeline
  readonly log: Logger
  readonly maxRequestBytes: number
  /** A client that takes nothing of a long answer for so long is cut off. */
  readonly idleSeconds: number
  /** Whether this is TLS: answers then carry Strict-Transport-Security. */
  readonly secure: boolean
  /** Whether the listener is closing: answers then end their connection. */
  readonly closing: () => boolean
  /** DER of what the client of a connection presented. */
  readonly clientCertificate: (request: IncomingMessage) => Uint8Array | undefined
}

const nothing = Buffer.alloc(0)
const tooLarge: RawReply = {
  status: 413,
  headers: ['Cache-Control', 'no-store', 'Content-Type', 'application/json'],
  body: '{"errors":["http: request body too large"]}\n',
}
const broken: RawReply = {
  status: 500,
  headers: tooLarge.headers,
  body: '{"errors":["1 error occurred:\\n\\t* internal error\\n\\n"]}\n',
}

/**
 * Koa without its own writer: the answer is written below, in one call. With the writer goes the hook on every answer's
 * end that only the writer needs, and a twentieth of a request's cost. The body's limit and the answer are no middlewares
 * of their own either: the promises between them showed in sys/health, pair by pair.
 */
class Edge extends Koa {
  handleRequest(context: Koa.Context, run: (context: Koa.Context) => Promise<void>): Promise<void> {
    return run(context).catch((error: unknown) => context.onerror(error as Error))
  }
}

/**
 * One Koa application with one middleware: it reads the request, gives it to the pipeline and writes the answer once.
 * @returns the listener for a node:http server
 */
export function createEdge(options: EdgeOptions): RequestListener {
  const app = new Edge()
  // Broken connections come here too: their client is gone.
  app.on('error', (error) => options.log.debug({ err: error }, 'a connection failed'))
  app.use((context) => {
    // The answer is written below, in one call, past Koa's own writer.
    context.respond = false
    serve(options, context.req, context.res)
  })
  return app.callback()
}

function serve(options: EdgeOptions, request: IncomingMessage, response: ServerResponse): void {
  const limits = {
    maxBytes: options.maxRequestBytes,
    routeBytes: () => options.pipeline.bodyLimit?.(rawRequest(options, request, nothing)),
  }
  readBody(request, limits, (body) => {
    if (body === undefined) {
      refuseBody(options, request, response)
      return
    }
    const reply = options.pipeline.handle(rawRequest(options, request, body))
    if (reply instanceof Promise) reply.then((done) => writeSoon(() => write(options, response, done)))
    else writeSoon(() => write(options, response, reply))
  })
}

const rawRequest = (options: EdgeOptions, request: IncomingMessage, body: Buffer): RawRequest => ({
  id: randomUUID(),
  method: request.method ?? '',
  ...splitTarget(request.url ?? ''),
  headers: request.headers,
  body,
  remoteAddress: request.socket.remoteAddress ?? '',
  remotePort: request.socket.remotePort ?? 0,
  clientCertificate: options.clientCertificate(request),
})

let waiting: (() => void)[] = []

/**
 * Answers of one turn of the event loop go out together at its end: clients then ask again together, and each turn serves
 * more of them. With 16 busy connections that saves a tenth of a request's cost; one alone waits microseconds.
 */
function writeSoon(answer: () => void): void {
  if (waiting.push(answer) > 1) return
  setImmediate(() => {
    const answers = waiting
    waiting = []
    for (const one of answers) one()
  })
}

function write(options: EdgeOptions, response: ServerResponse, reply: RawReply): void {
  try {
    response.writeHead(reply.status, headersOf(options, reply))
    const { body } = reply
    if (response.req.method === 'HEAD') response.end()
    else if (body instanceof Stream) void send(options, response, body.pieces())
    else if (body.length <= longestAtOnce) response.end(body)
    else void send(options, response, piecesOf(typeof body === 'string' ? Buffer.from(body) : body))
  } catch (error) {
    // A header that HTTP does not allow: a fault of the route.
    options.log.error({ err: error }, 'an answer could not be written')
    if (response.headersSent) response.destroy()
    else response.writeHead(broken.status, headersOf(options, broken)).end(broken.body)
  }
}

/** Characters or bytes that a socket takes whether the client reads or not. Longer bodies would hold their connection for ever. */
const longestAtOnce = 16 * 1024

/** The answer has begun: a failure can only cut it off, and the client sees that bytes are missing. */
async function send(
  options: EdgeOptions,
  response: ServerResponse,
  pieces: Parameters<typeof sendPieces>[1],
): Promise<void> {
  try {
    await sendPieces(response, pieces, options.idleSeconds * 1000)
  } catch (error) {
    options.log.error({ err: error }, 'a streamed answer broke off')
    response.req.socket.destroy()
  }
}

function headersOf(options: EdgeOptions, reply: RawReply): string[] {
  const headers = [...reply.headers]
  if (reply.status !== 204 && reply.status !== 304) {
    headers.push('Content-Length', String(lengthOf(reply.body)))
  }
  if (options.secure) headers.push('Strict-Transport-Security', 'max-age=31536000; includeSubDomains')
  if (options.closing()) headers.push('Connection', 'close')
  return headers
}

const lengthOf = (body: RawReply['body']): number => (body instanceof Stream ? body.length : Buffer.byteLength(body))

/** How long a client that sends too much may go on before it is cut off. */
const lingerMilliseconds = 1000

/**
 * Answers 413 and ends the connection a moment later: a connection closed at once, with bytes of the body still coming,
 * is reset, and the client would never read why.
 */
function refuseBody(options: EdgeOptions, request: IncomingMessage, response: ServerResponse): void {
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMilliseconds)
  request.resume().once('end', end).once('close', end)
  response.writeHead(tooLarge.status, [...headersOf({ ...options, closing: () => true }, tooLarge)])
  response.write(tooLarge.body)
}
