import { createSocket, type Socket } from 'node:dgram'
import type { Clock } from '../clock.ts'
import { Backoff, within } from './backoff.ts'
import type { SocketPlace } from './options.ts'
import type { Channel } from './streamwriter.ts'

/** UDP to a collector: each line is a datagram; one that does not fit (some 64 KiB) fails, and one may be lost. */
export class DatagramChannel implements Channel {
  readonly name: string
  readonly datagrams = true
  readonly #place: SocketPlace
  readonly #backoff: Backoff
  #socket: Socket | undefined

  constructor(place: SocketPlace, clock: Clock) {
    this.#place = place
    this.name = `udp:${place.address}`
    this.#backoff = new Backoff(clock)
  }

  async open(): Promise<void> {
    if (this.#socket !== undefined) return
    this.#backoff.check()
    const { host, port } = this.#place
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4').unref()
    const connected = new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(port, host, (error?: Error) => (error ? reject(error) : resolve()))
    })
    try {
      await within(this.#place.timeoutMilliseconds, connected, () => undefined)
    } catch (error) {
      socket.on('error', () => undefined).close()
      this.#backoff.failed(error)
      throw error
    }
    // The collector is away; the next send reports it.
    socket.on('error', () => undefined)
    this.#socket = socket
  }

  async send(lines: Buffer): Promise<void> {
    const socket = this.#socket
    if (socket === undefined) throw new Error('the socket is closed')
    const sent = new Promise<void>((resolve, reject) => {
      socket.send(lines, (error) => (error ? reject(error) : resolve()))
    })
    await within(this.#place.timeoutMilliseconds, sent, () => this.close())
  }

  close(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }
}
