import { readFile } from 'node:fs/promises'
import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { Logger } from '../log.ts'
import type { Pipeline } from '../request/exchange.ts'
import { declaresMore } from './body.ts'
import { acceptListVerb } from './listverb.ts'
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
}

export interface ListenerLimits {
  /** From the first byte (or the connection) to the last header, then 408. */
  readonly headersSeconds: number
  /** From the first byte to the last of the body, then 408. */
  readonly requestSeconds: number
  readonly idleSeconds: number
  readonly connections: number
}

/** An open socket that serves requests. */
export interface Listener {
  /** `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`, with the port that was bound. */
  readonly address: string
  /** Takes no more connections, finishes requests that have begun, and closes what remains after the deadline. */
  close(deadlineMilliseconds: number): Promise<void>
}

/**
 * Opens one listener. In a cluster worker the socket is shared with the other workers.
 * @throws when the address cannot be bound or a PEM file cannot be read
 */
export async function openListener(
  { address, tls, maxRequestBytes }: ListenerOptions,
  { pipeline, log, limits }: { pipeline: Pipeline; log: Logger; limits: ListenerLimits },
): Promise<Listener> {
  let closing = false
  const serve = createEdge({
    pipeline,
    log,
    maxRequestBytes,
    idleSeconds: limits.idleSeconds,
    secure: tls !== undefined,
    closing: () => closing,
    clientCertificate: tls?.clientCa === undefined ? () => undefined : presented,
  })
  const server = tls
    ? createTlsServer({ ...timeouts(limits), ...(await secureOptions(tls, limits)) }, serve)
    : createPlainServer(timeouts(limits), serve)
  server.maxConnections = limits.connections
  // Expect: 100-continue: a body that is too large is refused before it is sent.
  server.on('checkContinue', (request, response) => {
    if (!declaresMore(request, maxRequestBytes)) response.writeContinue()
    serve(request, response)
  })
  acceptListVerb(server)
  await listen(server, address)
  return {
    address: shown(server, tls ? 'https' : 'http'),
    close(deadlineMilliseconds) {
      closing = true
      return new Promise((resolve) => {
        const timer = setTimeout(() => server.closeAllConnections(), deadlineMilliseconds)
        server.close(() => {
          clearTimeout(timer)
          resolve()
        })
      })
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

function listen(server: Server, address: string): Promise<void> {
  const unix = address.startsWith('unix:')
  const colon = address.lastIndexOf(':')
  const where = unix
    ? { path: address.slice('unix:'.length) }
    : { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function shown(server: Server, scheme: string): string {
  const bound = server.address() as AddressInfo | string
  if (typeof bound === 'string') return `unix:${bound}`
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
  return `${scheme}://${host}:${bound.port}`
}
