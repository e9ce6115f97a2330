import { createSocket, type Socket } from 'node:dgram'
import { hostAndPort } from '../config/hostport.ts'
import type { Config } from '../config.ts'
import type { Logger } from '../log.ts'

type Settings = NonNullable<Config['cluster']['nudge']>

/** Between two datagrams to the same nodes, and between two polls that datagrams ask for. */
const pauseMilliseconds = 2
const retryMilliseconds = 1000
const content = Buffer.alloc(0)

/**
 * Hints between the nodes of a cluster: one has committed, so the others poll at once instead of at their next turn. A
 * datagram has no content and is not trusted. If one is lost, a writer waits for the next poll; a repeated or forged
 * one costs a poll, of which there are at most five hundred a second.
 */
export class Nudges {
  readonly #poll: () => void
  readonly #log: Logger
  #settings: Settings | undefined
  #socket: Socket | undefined
  readonly #sending = new Pause(() => this.#broadcast())
  readonly #polling: Pause

  /** @param poll makes every worker of this node poll */
  constructor(poll: () => void, log: Logger) {
    this.#poll = poll
    this.#log = log
    this.#polling = new Pause(() => this.#poll())
  }

  /** Listens as configured; without settings nudges are neither sent nor taken. */
  configure(settings: Settings | undefined): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return
    this.close()
    this.#settings = settings
    if (settings === undefined) return
    this.#listen(settings)
  }

  /** Tries again until the address is free: the supervisor that an upgrade replaces may still have it. */
  #listen(settings: Settings, reported = false): void {
    if (this.#settings !== settings) return
    const { host, port } = hostAndPort(settings.address)
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.on('error', (err) => {
      if (!reported) this.#log.error({ err }, 'nudges of other nodes are not heard')
      if (this.#socket !== socket) return
      socket.close()
      this.#socket = undefined
      setTimeout(() => this.#listen(settings, true), retryMilliseconds).unref()
    })
    socket.on('message', () => this.#polling.ask())
    socket.bind(port, host)
    this.#socket = socket
  }

  /** A worker of this node has committed. */
  send(): void {
    if (this.#socket !== undefined) this.#sending.ask()
  }

  close(): void {
    this.#socket?.close()
    this.#socket = undefined
    this.#settings = undefined
  }

  #broadcast(): void {
    for (const peer of this.#settings?.peers ?? []) {
      const { host, port } = hostAndPort(peer)
      // A peer that is away has no cache to be told about.
      this.#socket?.send(content, port, host, () => undefined)
    }
  }
}

/** Acts at once, and again after a pause if asked meanwhile. */
class Pause {
  readonly #act: () => void
  #pausing = false
  #again = false

  constructor(act: () => void) {
    this.#act = act
  }

  ask(): void {
    this.#again = this.#pausing
    if (this.#pausing) return
    this.#pausing = true
    this.#act()
    setTimeout(() => {
      this.#pausing = false
      if (this.#again) this.ask()
    }, pauseMilliseconds).unref()
  }
}
