import type { Server } from 'node:http'
import { type Socket, SocketAddress } from 'node:net'
import { Addresses } from '../config/addresses.ts'
import type { ReadRemote, Remote } from './forwarded.ts'

/** PROXY protocol, version 2 (haproxy.org, proxy-protocol.txt, section 2.2). */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const headerBytes = 16
/** Addresses and the additions of proxies, mostly names and checksums. */
const longestRest = 4096
const version2 = 2
const commands = { local: 0, proxy: 1 } as const
/** Family and transport: TCP over IPv4, TCP over IPv6. */
const addressBytes: Readonly<Record<number, 4 | 16>> = { 17: 4, 33: 16 }

export interface ProxyProtocolOptions {
  /** Of the proxies, whose connections must begin with a header; others are served as they are. */
  readonly addresses: readonly string[]
  /** A connection whose header is not there by then is closed. */
  readonly headerSeconds: number
}

/**
 * Lets a server (plain or TLS, not yet listening) take connections that begin with a PROXY header of version 2, from
 * its proxies alone: from elsewhere such a header is no HTTP.
 * @returns reads the client of a request that came over such a connection
 */
export function acceptProxyProtocol(server: Server, options: ProxyProtocolOptions): ReadRemote {
  const proxies = new Addresses(options.addresses)
  /** By the proxy's end of the connection: a TLS socket is another object than the one below it. */
  const clients = new Map<string, Remote>()
  /** By the connection itself: those of a unix socket have no other name. */
  const direct = new WeakMap<Socket, Remote>()
  const serve = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  server.removeAllListeners('connection')
  const isPlain = !('setSecureContext' in server)
  server.on('connection', (socket: Socket) => {
    const pass = (): void => {
      for (const listener of serve) listener.call(server, socket)
    }
    if (!proxies.has(socket.remoteAddress)) {
      pass()
      return
    }
    const end = endOf(socket)
    readHeader(socket, options.headerSeconds, (client) => {
      if (client !== undefined) {
        direct.set(socket, client)
        if (socket.remotePort !== undefined) {
          clients.set(end, client)
          socket.once('close', () => clients.delete(end))
        }
      }
      pass()
      if (isPlain) socket.resume()
    })
  })
  return ({ socket }) => direct.get(socket) ?? clients.get(endOf(socket))
}

const endOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

/** Takes the header off a connection; one that does not begin with a whole and sound header is cut. */
function readHeader(socket: Socket, seconds: number, done: (client: Remote | undefined) => void): void {
  let bytes = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), seconds * 1000)
  const fail = (): void => {
    socket.destroy()
  }
  const finish = (): void => {
    clearTimeout(timer)
    socket.off('data', take).off('error', fail).off('close', finish)
  }
  const take = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk])
    const length = headerLength(bytes)
    if (length === undefined || bytes.length < length) return
    finish()
    if (length === 0) {
      socket.destroy()
      return
    }
    socket.pause()
    if (bytes.length > length) socket.unshift(bytes.subarray(length))
    done(clientIn(bytes.subarray(0, length)))
  }
  socket.on('data', take).on('error', fail).on('close', finish)
}

/** The length of the header; undefined while it is not known, 0 where there is no header. */
function headerLength(bytes: Buffer): number | undefined {
  const shared = Math.min(bytes.length, signature.length)
  if (bytes.compare(signature, 0, shared, 0, shared) !== 0) return 0
  if (bytes.length < headerBytes) return undefined
  const [command, rest] = [bytes.readUInt8(12), bytes.readUInt16BE(14)]
  const known = command >> 4 === version2 && (command & 15) <= commands.proxy
  const needed = isForwarded(bytes) ? 2 * ((addressBytes[bytes.readUInt8(13)] ?? 0) + 2) : 0
  return known && rest >= needed && rest <= longestRest ? headerBytes + rest : 0
}

/** Whether it names a client: not for a check of the proxy's own, and not where the proxy does not know it. */
const isForwarded = (header: Buffer): boolean =>
  (header.readUInt8(12) & 15) === commands.proxy && addressBytes[header.readUInt8(13)] !== undefined

function clientIn(header: Buffer): Remote | undefined {
  if (!isForwarded(header)) return undefined
  const size = addressBytes[header.readUInt8(13)] ?? 0
  const source = header.subarray(headerBytes, headerBytes + size)
  const port = header.readUInt16BE(headerBytes + 2 * size)
  if (size === 4) return { address: source.join('.'), port }
  const groups = Array.from({ length: 8 }, (_, index) => source.readUInt16BE(2 * index).toString(16))
  return { address: new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address, port }
}
