import { connect, type Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import { Backoff, within } from './backoff.ts'
import type { SocketPlace } from './options.ts'
import type { Channel } from './streamwriter.ts'

/**
 * A TCP or unix connection to a collector of lines. A line counts as sent when the kernel has taken it, as in the
 * reference: lines that the kernel still holds when the collector dies are lost, and show as a break of the chain.
 */
export class SocketChannel implements Channel {
  readonly name: string
  readonly datagrams = false
  readonly #place: SocketPlace
  readonly #backoff: Backoff
  #socket: Socket | undefined

  constructor(place: SocketPlace, clock: Clock) {
    this.#place = place
    this.name = `${place.socketType}:${place.address}`
    this.#backoff = new Backoff(clock)
  }

  async open(): Promise<void> {
    if (this.#socket !== undefined) return
    this.#backoff.check()
    const { host, port, address, socketType } = this.#place
    const socket = socketType === 'unix' ? connect(address) : connect({ host, port, noDelay: true })
    socket.unref()
    // Data from the other side is ignored.
    socket.resume()
    let reason: Error = new Error('the other side closed the connection')
    socket.on('error', (error) => {
      reason = error
    })
    const drop = (): void => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#backoff.failed(reason)
    }
    socket.once('end', drop).once('close', drop)
    const connected = new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    try {
      await within(this.#place.timeoutMilliseconds, connected, () => socket.destroy())
    } catch (error) {
      this.#backoff.failed(error)
      throw error
    }
    this.#backoff.began()
    this.#socket = socket
  }

  async send(lines: Buffer): Promise<void> {
    const socket = this.#socket
    if (socket === undefined) throw new Error('the connection has ended')
    const sent = new Promise<void>((resolve, reject) => {
      socket.write(lines, (error) => (error ? reject(error) : resolve()))
    })
    try {
      await within(this.#place.timeoutMilliseconds, sent, () => undefined)
    } catch (error) {
      // Half a line may be on its way: nothing may follow it here.
      if (this.#socket === socket) {
        this.#socket = undefined
        this.#backoff.failed(error)
      }
      socket.destroy()
      throw error
    }
  }

  close(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.end()
  }
}
