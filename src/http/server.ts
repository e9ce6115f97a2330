import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import Koa from 'koa'
import { after } from '../after.ts'
import { type ApiError, badRequest, errorList } from '../errors.ts'
import type { Logger } from '../log.ts'
import { errorReply } from '../request/envelope.ts'
import {
  longestShortBody,
  type Pipeline,
  type RawReply,
  type RawRequest,
  strangerBodyBytes,
} from '../request/exchange.ts'
import { splitTarget } from '../request/path.ts'
import { Stream } from '../stream.ts'
import { type BodyRefusal, hasBody, readBody } from './body.ts'
import type { Budgets, Claim } from './budget.ts'
import { answerSoon, beginSoon } from './cohort.ts'
import type { ReadRemote, Remote } from './forwarded.ts'
import { type Pace, timeFor } from './pace.ts'
import { admit, discard } from './pipelined.ts'
import { cutIdle, sendHeld, sendPieces } from './streaming.ts'

export interface EdgeOptions {
  readonly pipeline: Pipeline
  readonly log: Logger
  readonly maxRequestBytes: number
  /** The worker's, which its listeners share. */
  readonly budgets: Budgets
  readonly pace: Pace
  /** Whether this is TLS: answers then carry Strict-Transport-Security. */
  readonly secure: boolean
  /** Whether the listener is closing: answers then end their connection. */
  readonly closing: () => boolean
  /** Reads the client of a request that a proxy has sent; absent where the peer is the client. */
  readonly remote?: ReadRemote | undefined
  /** The certificate that the client of a connection presented, in DER. */
  readonly clientCertificate: (request: IncomingMessage) => Uint8Array | undefined
}

const nothing = Buffer.alloc(0)
const headers = ['Cache-Control', 'no-store', 'Content-Type', 'application/json']
const refusal = (status: number, text: string): RawReply => ({
  status,
  headers: status === 503 ? [...headers, 'Retry-After', '1'] : headers,
  body: `${JSON.stringify({ errors: [text] })}\n`,
})
const broken = refusal(500, errorList(['internal error']))
const tooMany = refusal(503, 'too many requests wait on this connection for the answers in front of them')
const noRoomToAnswer = refusal(
  503,
  'the answer is withheld: too much of other answers is not read yet. What was asked may have been done',
)
const refusals: Readonly<Record<BodyRefusal, RawReply>> = {
  tooLong: refusal(413, 'http: request body too large'),
  tooLongUnsigned: refusal(
    413,
    `http: request body too large: more than ${strangerBodyBytes} bytes are taken with a valid token only`,
  ),
  tooSlow: refusal(408, 'the body comes too slowly: limits.leastBytesPerSecond is the least rate'),
  noRoom: refusal(503, 'the body cannot be taken now: too much of other bodies is under way'),
}

const twoHosts = badRequest('a request must have one Host header')

/**
 * Whether there is a second Host header, which a proxy in front may read where we read the first (RFC 9112 3.2).
 * @param headers name, value, name, value … as they were sent
 */
function hasTwoHosts(headers: readonly string[]): boolean {
  let hosts = 0
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]
    if (name?.length === 4 && (name === 'Host' || name.toLowerCase() === 'host')) hosts++
  }
  return hosts > 1
}

/**
 * Koa without its own writer: the answer is written below, in one call. With the writer goes the hook on every answer's
 * end that only the writer needs, and a twentieth of a request's cost. The body's limit and the answer are no
 * middlewares of their own either: the promises between them showed in sys/health, pair by pair.
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
  const admitted = admit(request, response, options.pace.idleMilliseconds)
  if (admitted !== 'serve') {
    if (admitted === 'refuse') write({ ...options, closing: () => true }, response, tooMany)
    return
  }
  let remote: Remote | undefined
  try {
    remote = options.remote?.(request)
    if (hasTwoHosts(request.rawHeaders)) throw twoHosts
  } catch (error) {
    const refused = options.pipeline.refused?.(rawRequest(options, request, remote, nothing))
    void after(refused, (limited) =>
      write({ ...options, closing: () => true }, response, limited ?? errorReply(error as ApiError)),
    )
    return
  }
  const address = remote?.address ?? request.socket.remoteAddress ?? ''
  const handle = (body: Buffer, claim?: Claim): void => {
    // Made now: the connection may be gone when it begins.
    const raw = rawRequest(options, request, remote, body)
    beginSoon(() => {
      const reply = options.pipeline.handle(raw)
      if (reply instanceof Promise) reply.then((done) => answer(options, response, { reply: done, claim, address }))
      else answer(options, response, { reply, claim, address })
    })
  }
  if (!hasBody(request)) {
    handle(nothing)
    return
  }
  const limits = {
    maxBytes: options.maxRequestBytes,
    budgets: options.budgets,
    pace: options.pace,
    address,
    ask: () => options.pipeline.bodyLimit?.(rawRequest(options, request, remote, nothing)),
  }
  readBody(request, limits, (body, claim) => {
    if (typeof body !== 'string') {
      handle(body, claim)
      return
    }
    takeNoMore(request, options.pace)
    const refused = options.pipeline.refused?.(rawRequest(options, request, remote, nothing))
    void after(refused, (limited) => refuse(options, { request, response, reply: limited ?? refusals[body] }))
  })
}

interface Answer {
  readonly reply: RawReply
  /** The part of a budget that the body has held until now. */
  readonly claim: Claim | undefined
  /** The client's. */
  readonly address: string
}

function answer(options: EdgeOptions, response: ServerResponse, { reply, claim, address }: Answer): void {
  claim?.release()
  answerSoon(() => write(options, response, reply, address))
}

const rawRequest = (
  options: EdgeOptions,
  request: IncomingMessage,
  remote: Remote | undefined,
  body: Buffer,
): RawRequest => ({
  id: randomUUID(),
  receivedAt: performance.now(),
  method: request.method ?? '',
  ...splitTarget(request.url ?? ''),
  headers: request.headers,
  body,
  remoteAddress: remote?.address ?? request.socket.remoteAddress ?? '',
  remotePort: remote?.port ?? request.socket.remotePort ?? 0,
  clientCertificate: options.clientCertificate(request),
})

/** @param address of the client, whose share of the answers' budget counts */
function write(options: EdgeOptions, response: ServerResponse, reply: RawReply, address = ''): void {
  try {
    const { body } = reply
    if (body.length > longestShortBody && !(body instanceof Stream)) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      writeLong(options, response, reply, { bytes, address })
      return
    }
    response.writeHead(reply.status, headersOf(options, reply))
    if (response.req.method === 'HEAD') response.end()
    else if (body instanceof Stream)
      return void send(options, response, sendPieces(response, body.pieces(), options.pace))
    else response.end(body)
    cutUnread(response, options.pace)
  } catch (error) {
    // A header that HTTP does not allow: a fault of the route.
    options.log.error({ err: error }, 'an answer could not be written')
    if (response.headersSent) response.destroy()
    else response.writeHead(broken.status, headersOf(options, broken)).end(broken.body)
  }
}

/**
 * Ends the connection of an answer that has ended and is not taken in time, whatever the client sends meanwhile:
 * nothing else would.
 */
function cutUnread(response: ServerResponse, pace: Pace): void {
  // Behind another answer this one is not the client's to take yet.
  if (response.socket === null) response.once('socket', () => cutLater(response, pace))
  else if (response.socket.writableLength > 0) cutLater(response, pace)
}

function cutLater(response: ServerResponse, pace: Pace): void {
  cutIdle(response, pace)
  const timer = setTimeout(() => response.req.socket.destroy(), timeFor(pace, response.writableLength))
  response.once('finish', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
}

/** A body, and whose share of the budget it takes. */
interface Held {
  readonly bytes: Uint8Array
  readonly address: string
}

/** A body that is held until the client has taken it, if there is room for that. */
function writeLong(options: EdgeOptions, response: ServerResponse, reply: RawReply, { bytes, address }: Held): void {
  const { answers, answersToStrangers } = options.budgets
  const claim = (reply.forCaller === true ? answers : answersToStrangers).claim(address)
  const { socket } = response.req
  if (!socket.destroyed && !claim.resize(bytes.length)) {
    write(options, response, noRoomToAnswer)
    return
  }
  const release = (): void => {
    socket.off('close', release)
    claim.release()
  }
  // An answer that waits for its turn is not told that its connection is gone.
  socket.once('close', release)
  response.once('finish', release)
  try {
    response.writeHead(reply.status, headersOf(options, reply))
  } catch (error) {
    release()
    throw error
  }
  const shown = response.req.method === 'HEAD' ? nothing : bytes
  void send(options, response, sendHeld(response, shown, options.pace))
}

/** The answer has begun: a failure can only cut it off, and the client sees that bytes are missing. */
async function send(options: EdgeOptions, response: ServerResponse, sending: Promise<boolean>): Promise<void> {
  try {
    if (await sending) cutUnread(response, options.pace)
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

/** A client that is refused is cut off once it has sent nothing for a second, and after ten in any case. */
const [lingerMilliseconds, mostLingers] = [1000, 10]

/** The rest of a request is not parsed: of a body in small chunks, each would be a buffer of its own. */
function takeNoMore(request: IncomingMessage, { idleMilliseconds }: Pace): void {
  if (request.complete) return
  discard(request.socket, idleMilliseconds)
  request.resume()
}

/**
 * Answers before the body has come, and ends the connection when no more of it comes: one that is closed with bytes of
 * the body still coming is reset, and the client would never read why.
 */
function refuse(
  options: EdgeOptions,
  { request, response, reply }: { request: IncomingMessage; response: ServerResponse; reply: RawReply },
): void {
  const ending = { ...options, closing: () => true }
  if (request.complete) {
    write(ending, response, reply)
    return
  }
  response.writeHead(reply.status, headersOf(ending, reply))
  response.write(reply.body)
  const { socket } = request
  let lingers = 0
  let before = socket.bytesRead
  const check = (): void => {
    const isOver = socket.bytesRead === before || ++lingers === mostLingers || options.closing()
    before = socket.bytesRead
    if (!isOver) return
    clearInterval(timer)
    response.end()
  }
  // After the bytes that wait at the socket were read: this thread itself may have been busy.
  const timer = setInterval(() => setImmediate(check), lingerMilliseconds)
  response.once('close', () => clearInterval(timer))
}
