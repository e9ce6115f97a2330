import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { Logger } from '../log.ts'
import type { Pipeline } from '../request/exchange.ts'
import { declaresMore } from './body.ts'
import type { Budgets } from './budget.ts'
import { Connections } from './connections.ts'
import { type ForwardedFor, readForwardedFor } from './forwarded.ts'
import { acceptListVerb } from './listverb.ts'
import { createServer as createPlainServer } from './nodehttp.ts'
import { acceptProxyProtocol } from './proxyprotocol.ts'
import { createEdge } from './server.ts'

export interface ListenerOptions {
  /** `host:port`, `[IPv6]:port` or `unix:/PATH`. */
  readonly address: string
  /** Paths of PEM files. */
  readonly tls?: {
    readonly certificate: string
    readonly key: string
    readonly minimumVersion: '1.2' | '1.3'
    /** Clients are asked for a certificate of these authorities, and served without one too. */
    readonly clientCa?: string | undefined
  }
  readonly maxRequestBytes: number
  /** Proxies that name the client in X-Forwarded-For. */
  readonly forwardedFor?: ForwardedFor | undefined
  /** Proxies that name the client in the PROXY protocol. */
  readonly proxyProtocol?: { readonly addresses: readonly string[] } | undefined
}

export interface ListenerLimits {
  /** From the first byte (or the connection) to the last header, then 408. */
  readonly headersSeconds: number
  /** From the first byte to the last of the body, then 408. */
  readonly requestSeconds: number
  readonly idleSeconds: number
  /** Of bodies that come and of answers that are taken. */
  readonly leastBytesPerSecond: number
  readonly connections: number
}

/** A server that serves the requests of the connections it is given. */
export interface Serving {
  /** Serves a connection that another process has accepted; beyond the limit it is closed. */
  accept(connection: Socket): void
  /**
   * Finishes requests that have begun, each of whose answers ends its connection. An idle connection may bring one more
   * request for `keepAliveMilliseconds`: closed at once, it would lose the one that is on its way (as nginx has it with
   * keepalive_min_timeout). Closes what remains after the deadline.
   */
  close(deadlineMilliseconds: number, keepAliveMilliseconds?: number): Promise<void>
}

export interface ListenerContext {
  readonly pipeline: Pipeline
  readonly log: Logger
  readonly limits: ListenerLimits
  readonly budgets: Budgets
}

/**
 * A listener without a socket: its connections are given to it.
 * @throws when a PEM file cannot be read
 */
export async function createListener(
  { tls, maxRequestBytes, forwardedFor, proxyProtocol }: ListenerOptions,
  { pipeline, log, limits, budgets }: ListenerContext,
): Promise<Serving> {
  let closing = false
  let remote = forwardedFor && readForwardedFor(forwardedFor)
  const serve = createEdge({
    get remote() {
      return remote
    },
    pipeline,
    log,
    maxRequestBytes,
    budgets,
    pace: { idleMilliseconds: limits.idleSeconds * 1000, leastBytesPerSecond: limits.leastBytesPerSecond },
    secure: tls !== undefined,
    closing: () => closing,
    clientCertificate: tls?.clientCa === undefined ? () => undefined : presented,
  })
  const server = tls
    ? createTlsServer({ ...timeouts(limits), ...(await secureOptions(tls, limits)) }, serve)
    : createPlainServer(timeouts(limits), serve)
  // Expect: 100-continue: a body that is too large is refused before it is sent.
  server.on('checkContinue', (request, response) => {
    if (!declaresMore(request, maxRequestBytes)) response.writeContinue()
    serve(request, response)
  })
  acceptListVerb(server)
  if (proxyProtocol) {
    remote = acceptProxyProtocol(server, { ...proxyProtocol, headerSeconds: limits.headersSeconds })
  }
  const connections = new Connections(server)
  // Node watches over slow headers and bodies from here on, and this server never listens.
  server.emit('listening')
  return {
    accept(connection) {
      if (connections.count < limits.connections) connections.inject(connection)
      else connection.destroy()
    },
    close(deadlineMilliseconds, keepAliveMilliseconds = 0) {
      closing = true
      return connections.close(deadlineMilliseconds, keepAliveMilliseconds)
    },
  }
}

const timeouts = (limits: ListenerLimits): ServerOptions => ({
  headersTimeout: limits.headersSeconds * 1000,
  requestTimeout: Math.max(limits.requestSeconds, limits.headersSeconds) * 1000,
  keepAliveTimeout: limits.idleSeconds * 1000,
  connectionsCheckingInterval: 1000,
})

async function secureOptions(tls: NonNullable<ListenerOptions['tls']>, limits: ListenerLimits): Promise<TlsOptions> {
  const [cert, key, ca] = await Promise.all([
    readFile(tls.certificate),
    readFile(tls.key),
    tls.clientCa === undefined ? undefined : readFile(tls.clientCa),
  ])
  return {
    cert,
    key,
    minVersion: `TLSv${tls.minimumVersion}`,
    handshakeTimeout: limits.headersSeconds * 1000,
    ...(ca ? { ca, requestCert: true, rejectUnauthorized: false } : {}),
  }
}

const certificates = new WeakMap<object, { readonly der: Uint8Array | undefined }>()

/** Read once for each connection: it copies the certificate out of OpenSSL. */
function presented(request: IncomingMessage): Uint8Array | undefined {
  const known = certificates.get(request.socket)
  if (known) return known.der
  // Without a certificate the object is empty, whatever its type says.
  const peer: { raw?: Buffer } = (request.socket as TLSSocket).getPeerCertificate()
  certificates.set(request.socket, { der: peer.raw })
  return peer.raw
}
